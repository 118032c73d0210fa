import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { completePod } from '../../../src/kinds/pod-defaults.ts';
import { podSpecFaultsOf } from '../../../src/kinds/pod-faults.ts';
import { BUILD_TIMEOUT_MS, ensureGoTool } from '../../support/go-tools/programs.ts';
import { objectOf, renderObjects } from '../../support/helm.ts';
import { pageBlock } from '../../support/page-block.ts';

const block = (firstLines: string) => parse(pageBlock(firstLines, 'docs/export.md', 'yaml'));

beforeAll(async () => {
  await ensureGoTool('helm');
}, BUILD_TIMEOUT_MS);

describe('the canary of docs/export.md', () => {
  const DEPLOYMENT = block('apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: shop-canary }');
  const SERVICE = block('apiVersion: v1\nkind: Service\nmetadata:\n  name: shop-web');

  it('is a Deployment whose Pods admission completes without a fault, for the Service of the page', () => {
    const { metadata, spec } = completePod(DEPLOYMENT.spec.template, 'dev');
    expect(podSpecFaultsOf(spec, 'spec')).toEqual([]);
    expect(metadata?.labels).toMatchObject(SERVICE.spec.selector);
    expect(metadata?.labels).toMatchObject(DEPLOYMENT.spec.selector.matchLabels);
    expect(spec.containers[0]?.env).toContainEqual({ name: 'BIZ_VERSION', value: '2.0.0' });
  });

  it('keeps off the bases of all versions, also after admission', () => {
    const { spec } = completePod(DEPLOYMENT.spec.template, 'dev');
    expect(spec.affinity?.podAntiAffinity).toEqual({
      requiredDuringSchedulingIgnoredDuringExecution: [
        {
          topologyKey: 'kubernetes.io/hostname',
          labelSelector: { matchLabels: { 'module.koupleless.io/name': 'shop' } },
        },
      ],
    });
  });
});

describe('the feed of docs/export.md', () => {
  it('is mounted alike by the patch of kustomize and by the values of the chart', async () => {
    const { metadata, spec } = block('apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: module-platform');
    const { platform } = block('platform:\n  extraEnv:');
    const image = { repository: 'registry.example.com/module-controller' };
    const config = { ENABLE_MQTT_TUNNEL: true, MQTT_BROKER: 'mqtt.example.com' };
    const objects = await renderObjects({ values: { image, config, platform: { enabled: true, ...platform } } });
    const rendered = objectOf(objects, 'Deployment', metadata.name).spec.template.spec;
    const [patched] = spec.template.spec.containers;
    const [container] = rendered.containers;
    expect(container.name).toBe(patched.name);
    expect(container.env).toEqual(expect.arrayContaining(patched.env));
    expect(container.volumeMounts).toEqual(patched.volumeMounts);
    expect(rendered.volumes).toEqual(spec.template.spec.volumes);
  });

  it('finds its files where the Secrets are mounted', () => {
    const { spec } = block('apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: module-platform');
    const [{ env, volumeMounts }] = spec.template.spec.containers;
    const mounted = volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    for (const { name, value } of env)
      expect([name, mounted]).toEqual([name, expect.arrayContaining([value.replace(/\/tls\.(crt|key)$/, '')])]);
  });
});
