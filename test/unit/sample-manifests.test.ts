import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { parseManifests } from '../../samples/control-plane/manifests.ts';
import { simulatedScene } from '../../samples/demo/simulated-rollout.ts';
import { IMAGE_ENVIRONMENT } from '../../samples/process/start-command.ts';
import { VARIABLES, type VariableName } from '../../src/config/variables.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, nodeNameOf } from '../../src/labels.ts';
import { batchSizes } from '../../src/platform/rollout/batches.ts';
import { limitsOf } from '../../src/platform/rollout/rollout-limits.ts';
import { nodeLabelsOf, nodeTaintsOf } from '../../src/vnode/node-object.ts';
import { anchorsOf, codesOf, linksOf, sectionOf, tableOf } from './docs/markdown.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');
const samples = readdirSync(new URL('samples/', ROOT)).filter(
  (name) => name.endsWith('.yaml') && !name.includes('catalog'),
);

/** The labels of a base of the simulator. */
const labels: Record<string, string> = nodeLabelsOf({
  base: { identity: 'base-1', name: 'base', version: '1.0.0', clusterName: 'default', hostName: 'h', ip: '192.0.2.1' },
  tunnel: 'mqtt_tunnel_provider',
  env: 'dev',
  kubeletVersion: '',
  health: undefined,
  reachability: 'Reachable',
} as Parameters<typeof nodeLabelsOf>[0]);

function podTemplateOf(file: string): KubeObject {
  const workload = parseManifests(read(file)).find((object) => object.kind !== 'Service');
  return workload.spec.template ?? workload;
}

describe.each(samples)('samples/%s', (name) => {
  const file = `samples/${name}`;
  const { metadata, spec } = podTemplateOf(file);

  it('opens with a comment that shows how it is used', () => {
    expect(read(file)).toMatch(/^# .*/);
    expect(read(file)).toContain(`kubectl apply -f ${file}`);
  });

  it('is a Pod of modules, each a jar at a documentation address with its version', () => {
    expect(metadata.labels[COMPONENT_LABEL]).toBe(COMPONENT.module);
    for (const container of spec.containers) {
      expect(container.image).toMatch(new RegExp(`^https://jars\\.example\\.com/${container.name}-1\\.0\\.0.*\\.jar$`));
      expect(container.env).toEqual([{ name: 'BIZ_VERSION', value: '1.0.0' }]);
    }
  });

  it('tolerates what a Node of a base is tainted with, and selects such a Node', () => {
    const tolerations = nodeTaintsOf('dev').map((taint) => ({ ...taint, operator: 'Equal' }));
    expect(spec.tolerations).toEqual(expect.arrayContaining(tolerations));
    const [term] = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    for (const { key, values } of term.matchExpressions) expect(values).toContain(labels[key]);
    expect(labels['kubernetes.io/hostname']).toBe(nodeNameOf('base-1'));
  });
});

describe('samples/module-rollout.yaml', () => {
  const { metadata, spec } = parseManifests(read('samples/module-rollout.yaml'))[0];

  it('is what the demo says of it: two batches, and no Pod goes before another serves', () => {
    const scene = simulatedScene({ broken: undefined });
    expect({ name: metadata.name, replicas: spec.replicas }).toEqual({ name: scene.name, replicas: scene.replicas });
    expect(spec.strategy.batch.needConfirm).toBe(true);
    expect(batchSizes(spec.strategy.batch, spec.replicas)).toEqual([2, 4]);
    expect(limitsOf(spec.strategy, spec.replicas)).toMatchObject({ type: 'Batch', maxSurge: 1, isLossless: true });
  });

  it('has the version where sed finds it, once a line', () => {
    const text = read('samples/module-rollout.yaml');
    const updated = text.split('\n').map((line) => line.replace(/1\.0\.0/, '2.0.0'));
    expect(updated.join('\n')).not.toContain('1.0.0');
  });
});

describe('docs/stock-agent.md', () => {
  const PAGE = read('docs/stock-agent.md');
  const objects = [...PAGE.matchAll(/^```yaml\n(.*?)^```/gms)].flatMap(([, text]) => parseManifests(text ?? ''));
  const pods: KubeObject[] = objects.filter(({ kind }) => kind !== 'ConfigMap').map((it) => it.spec.template ?? it);
  const address = '10.244.0.7';
  /** What the hook of the stock agent says. */
  const stock: Record<string, string> = nodeLabelsOf({
    base: { identity: address, name: 'TO_BE_IMPLEMENTED', version: '1.0.0', clusterName: 'default', hostName: address },
    tunnel: 'mqtt_tunnel_provider',
    env: 'default',
  } as Parameters<typeof nodeLabelsOf>[0]);

  it('has manifests of each kind that it describes', () => {
    expect(objects.map(({ kind }) => kind)).toEqual(['ConfigMap', 'Deployment', 'Pod']);
  });

  it('lists labels of the Node as they are', () => {
    const rows = tableOf(PAGE.slice(PAGE.indexOf('A Node of such a base')));
    expect(rows.length).toBeGreaterThan(5);
    for (const row of rows) {
      const [[key = ''], [value]] = [codesOf(row.Label ?? ''), codesOf(row.Value ?? '')];
      expect(stock[key], key).toBe(value);
    }
    expect(tableOf(sectionOf(PAGE, 'What a base reports')).length).toBeGreaterThan(5);
  });

  it('sets variables of the controller to values that it takes', () => {
    for (const [name, value] of Object.entries(objects[0]?.data as Record<string, string>)) {
      expect(VARIABLES, name).toHaveProperty(name);
      expect(VARIABLES[name as VariableName].rule.parse(value), name).toBeDefined();
    }
    expect(objects[0]?.data.ENV).toBe(stock['virtual-kubelet.koupleless.io/env']);
  });

  it('has Pods that the Node of a stock base takes', () => {
    const tolerations = nodeTaintsOf('default').map((taint) => ({ ...taint, operator: 'Equal' }));
    for (const { metadata, spec } of pods) {
      expect(metadata.labels[COMPONENT_LABEL]).toBe(COMPONENT.module);
      expect(spec.tolerations).toEqual(tolerations);
      const [term] = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
      for (const { key, values } of term.matchExpressions) expect(values).toEqual([stock[key]]);
      for (const key of Object.keys(metadata.annotations ?? {})) expect(Object.values(ANNOTATION)).toContain(key);
      for (const { name, image, env } of spec.containers) {
        expect(image).toContain(`/${name}-1.0.0`);
        expect(env).toEqual([{ name: 'BIZ_VERSION', value: '1.0.0' }]);
      }
    }
  });

  it('links to files that are there', () => {
    const targets = linksOf(PAGE).filter((target) => !/^(https?:|#)/.test(target));
    const missing = targets.filter(
      (target) => !existsSync(new URL(target.replace(/#.*$/, ''), new URL('docs/', ROOT))),
    );
    expect(missing).toEqual([]);
    const anchors = linksOf(PAGE).filter((target) => target.startsWith('#'));
    for (const anchor of anchors) expect(anchorsOf(PAGE)).toContain(anchor.slice(1));
  });
});

// A DaemonSet has one Pod on a Node anyway.
it.each(samples.filter((name) => name !== 'module-daemonset.yaml'))(
  'samples/%s keeps to one copy of a version on a base',
  (name) => {
    const { metadata, spec } = podTemplateOf(`samples/${name}`);
    const [rule] = spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
    const { app: _app, [COMPONENT_LABEL]: _component, ...ofModule } = metadata.labels;
    expect(rule.labelSelector.matchLabels).toEqual(ofModule);
  },
);

describe('deploy/', () => {
  const { resources } = parse(read('deploy/kustomization.yaml')) as { resources: string[] };
  const objects: KubeObject[] = resources.flatMap((file) => parseManifests(read(`deploy/${file}`)));
  const find = (kind: string): KubeObject => objects.find((object) => object.kind === kind);
  const [container] = find('Deployment').spec.template.spec.containers;

  it('has every file in its kustomization', () => {
    const files = readdirSync(new URL('deploy/', ROOT)).filter(
      (name) => name.endsWith('.yaml') && name !== 'kustomization.yaml',
    );
    expect(resources.toSorted()).toEqual(files.toSorted());
  });

  it('sets only variables that the controller knows, to values that it takes', () => {
    const given: Record<string, string> = find('ConfigMap').data;
    for (const [name, value] of Object.entries(given)) {
      expect(VARIABLES, name).toHaveProperty(name);
      expect(VARIABLES[name as VariableName].rule.parse(value), name).toBeDefined();
    }
    for (const { name } of container.env) expect(VARIABLES).toHaveProperty(name);
  });

  it('takes its environment from an object that is there, and from a Secret that may be there', () => {
    expect(container.envFrom).toEqual([
      { configMapRef: { name: find('ConfigMap').metadata.name } },
      { secretRef: { name: 'module-controller-mqtt', optional: true } },
    ]);
    expect(read('deploy/config.yaml')).toContain('create secret generic module-controller-mqtt');
    expect(find('Deployment').spec.template.spec.serviceAccountName).toBe(find('ServiceAccount').metadata.name);
  });

  it('probes and scrapes the ports that the controller opens by default', () => {
    const ports = Object.fromEntries(container.ports.map((port: KubeObject) => [port.name, port.containerPort]));
    expect(ports).toEqual({
      probes: Number(VARIABLES.HEALTH_PROBE_PORT.default),
      metrics: Number(VARIABLES.METRICS_PORT.default),
      'http-tunnel': Number(VARIABLES.HTTP_TUNNEL_LISTEN_PORT.default),
    });
    const served = objects.filter(({ kind }) => kind === 'Service').flatMap(({ spec }) => spec.ports);
    expect(served).toEqual(['metrics', 'http-tunnel'].map((name) => ({ name, port: ports[name], targetPort: name })));
  });

  it('selects its own Pods', () => {
    const own = find('Deployment').spec.template.metadata.labels;
    expect(own).toMatchObject(find('Service').spec.selector);
    expect(own).toMatchObject(find('PodDisruptionBudget').spec.selector.matchLabels);
  });
});

describe('the image', () => {
  it('has what the controller is made of, and nothing of the tests', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap((match) => match[1]?.split(' '));
    const allowed = read('.dockerignore').match(/(?<=^!).+$/gm) ?? [];
    expect(new Set(copied)).toEqual(new Set(allowed));
    expect(copied).toEqual(expect.arrayContaining(['src', 'tunnels', 'package.json']));
  });

  it('starts as npm start does', () => {
    const command = JSON.parse(read('Dockerfile').match(/(?<=^CMD ).+$/m)?.[0] ?? '[]');
    expect(command.join(' ')).toBe(JSON.parse(read('package.json')).scripts.start);
    for (const [name, value] of Object.entries(IMAGE_ENVIRONMENT)) {
      expect(read('Dockerfile')).toContain(`\nENV ${name}=${value}\n`);
    }
  });

  it('runs as the user that deploy/ asks for', () => {
    const deployment = parse(read('deploy/deployment.yaml')) as KubeObject;
    const { runAsUser, runAsGroup } = deployment.spec.template.spec.securityContext;
    expect(read('Dockerfile')).toContain(`USER ${runAsUser}:${runAsGroup}`);
  });
});
