import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { parseManifests } from '../../../samples/control-plane/manifests.ts';
import { VARIABLES, type VariableName } from '../../../src/config/variables.ts';
import { COMPONENT, COMPONENT_LABEL, nodeNameOf } from '../../../src/labels.ts';
import { nodeLabelsOf, nodeTaintsOf } from '../../../src/vnode/node-object.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, ROOT), 'utf8');
const samples = readdirSync(new URL('samples/', ROOT)).filter((name) => name.endsWith('.yaml'));

/** The labels of a base of the simulator. */
const labels: Record<string, string> = nodeLabelsOf({
  base: { identity: 'base-1', name: 'base', version: '1.0.0', clusterName: 'default', hostName: 'h', ip: '192.0.2.1' },
  tunnel: 'mqtt_tunnel_provider',
  env: 'dev',
  version: '',
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
    const given: Record<string, string> = { ...find('ConfigMap').data, ...find('Secret').stringData };
    for (const [name, value] of Object.entries(given)) {
      expect(VARIABLES, name).toHaveProperty(name);
      expect(VARIABLES[name as VariableName].rule.parse(value), name).toBeDefined();
    }
    for (const { name } of container.env) expect(VARIABLES).toHaveProperty(name);
  });

  it('takes its environment from objects that are there', () => {
    const names = container.envFrom.map((source: KubeObject) => (source.configMapRef ?? source.secretRef).name);
    expect(names).toEqual([find('ConfigMap').metadata.name, find('Secret').metadata.name]);
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
  });

  it('runs as the user that deploy/ asks for', () => {
    const deployment = parse(read('deploy/deployment.yaml')) as KubeObject;
    const { runAsUser, runAsGroup } = deployment.spec.template.spec.securityContext;
    expect(read('Dockerfile')).toContain(`USER ${runAsUser}:${runAsGroup}`);
  });
});
