import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { sampleDeployment } from '../../../samples/jvm/sample-deployment.ts';

const CHANGES = { version: '2.0.0', url: 'http://127.0.0.1:1/x.jar', replicas: 7 } as const;

// biome-ignore lint/suspicious/noExplicitAny: a manifest
function deploymentOf(name: string, changes: Parameters<typeof sampleDeployment>[1]): any {
  const file = new URL(`../../../samples/java/${name}/deployment.yaml`, import.meta.url);
  const documents = parseAllDocuments(sampleDeployment(readFileSync(file, 'utf8'), changes));
  return documents.map((document) => document.toJS()).find(({ kind }) => kind === 'Deployment');
}

describe.each(['shop', 'price'])('the manifest of the Java module %s', (name) => {
  it('is of another version, from another place, in every part that says so', () => {
    const { metadata, spec } = deploymentOf(name, CHANGES);
    expect(metadata.name).toBe(name);
    expect(spec.replicas).toBe(7);
    const [container] = spec.template.spec.containers;
    expect(container).toMatchObject({ name, image: CHANGES.url, env: [{ name: 'BIZ_VERSION', value: '2.0.0' }] });
    expect(JSON.stringify(spec.template)).not.toContain('1.0.0');
  });

  it('is kept on one Node where that is asked for', () => {
    expect(deploymentOf(name, CHANGES).spec.template.spec.nodeSelector).toBeUndefined();
    const { template } = deploymentOf(name, { ...CHANGES, node: 'vnode.java-1' }).spec;
    expect(template.spec.nodeSelector).toEqual({ 'kubernetes.io/hostname': 'vnode.java-1' });
  });
});

describe('the strategy of an update', () => {
  it('lets the old web module go first, and leaves its clients time to look away', () => {
    const { spec } = deploymentOf('shop', CHANGES);
    expect(spec.strategy.rollingUpdate).toEqual({ maxSurge: 0, maxUnavailable: 1 });
    expect(spec.template.spec.containers[0].lifecycle).toEqual({ preStop: { sleep: { seconds: 3 } } });
  });

  it('lets the new one come first where both can be on a base', () => {
    expect(deploymentOf('price', CHANGES).spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
  });
});
