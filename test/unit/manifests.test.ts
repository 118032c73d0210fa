import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { parseManifests } from '../../samples/control-plane/manifests.ts';
import { loadConfig } from '../../src/config/config.ts';
import { rules } from '../../src/config/rules.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import * as labels from '../../src/labels.ts';
import { memberLeaseNameOf } from '../../src/lease/member.ts';
import { recordNameOf } from '../../src/pod/contact-store.ts';
import { reasonNotConfined, resourceOf } from '../../src/reconcile/access.ts';
import { accessOf } from '../../src/reconcile/controller-definition.ts';
import { providerIdOf } from '../../src/vnode/node-object.ts';
import { CORE_NAME, DEFINITIONS, PLATFORM } from '../manifests/definitions.ts';
import { generatedManifests } from '../manifests/manifests.ts';
import { BY_HAND, kustomizeValues, OF_HELM, renderedManifests } from '../manifests/rendered.ts';
import { SECRET_VARIABLES, variablesOfCore, variablesOfPlatform } from '../manifests/values-schema.ts';
import { BUILD_TIMEOUT_MS, ensureGoTool, GO_TOOLS } from '../support/go-tools/programs.ts';
import { CHART, objectOf, renderObjects } from '../support/helm.ts';

const ROOT = new URL('../../', import.meta.url);
const DIRECTORY = new URL('deploy/platform/', ROOT);
const textOf = (name: string): string => readFileSync(new URL(name, DIRECTORY), 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: manifests of many kinds
const documentsOf = (name: string): any[] => parseAllDocuments(textOf(name)).map((document) => document.toJS());

/** The least that a user has to write. */
const MINIMAL = {
  image: { repository: 'registry.example.com/module-controller' },
  config: { ENABLE_MQTT_TUNNEL: true, MQTT_BROKER: 'mqtt.example.com' },
};
const HTTP = {
  ...MINIMAL,
  config: { ENABLE_HTTP_TUNNEL: true, HTTP_TUNNEL_BASE_NETWORKS: '10.244.0.0/16' },
  existingSecret: 'tokens',
};

beforeAll(async () => {
  await ensureGoTool('helm');
}, BUILD_TIMEOUT_MS);

describe('the files that kustomize uses', () => {
  it.each(Object.entries(generatedManifests()))('%s is as `npm run manifests` makes it', (path, text) => {
    expect(readFileSync(new URL(path, ROOT), 'utf8')).toBe(text);
  });

  it('are as `npm run manifests` renders them from the chart', async () => {
    const rendered = await renderedManifests();
    const stored = Object.fromEntries(
      Object.keys(rendered).map((path) => [path, readFileSync(new URL(path, ROOT), 'utf8')]),
    );
    expect(stored).toEqual(rendered);
  });

  it.each([
    ['deploy/', ['kustomization.yaml', 'namespace.yaml']],
    ['deploy/platform/', ['kustomization.yaml']],
    ['deploy/monitoring/', ['kustomization.yaml']],
  ])('are all in the kustomization of %s, and all made from the chart', async (folder, byHand) => {
    const names = readdirSync(new URL(folder, ROOT)).filter((name) => name.endsWith('.yaml'));
    const { resources } = parse(readFileSync(new URL(`${folder}kustomization.yaml`, ROOT), 'utf8'));
    expect([...resources].sort()).toEqual(names.filter((name) => name !== 'kustomization.yaml').sort());
    const made = [...Object.keys(await renderedManifests()), ...BY_HAND];
    expect(names.filter((name) => !byHand.includes(name)).filter((name) => !made.includes(folder + name))).toEqual([]);
  });

  it('are the same objects as those of the chart, but for what only Helm has', async () => {
    const objects = await renderObjects({ values: await kustomizeValues() });
    const built = await Promise.all(['deploy', 'deploy/platform', 'deploy/monitoring'].map(kustomize));
    const namespace = built.flat().filter(({ kind }) => kind === 'Namespace');
    expect(namespace.map(({ metadata }) => metadata.name)).toEqual(['koupleless-system']);
    const others = built.flat().filter(({ kind }) => kind !== 'Namespace');
    expect(byKey(others)).toEqual(byKey(objects.map(withoutHelm)));
  });

  it('overwrite no Secret of a user', async () => {
    const objects = [...(await kustomize('deploy')), ...(await renderObjects({ values: await kustomizeValues() }))];
    const secrets = objects.filter(({ kind }) => kind === 'Secret');
    // The controller fills it; what is there stays.
    expect(secrets.map(({ metadata, data, stringData }) => [metadata.name, data, stringData])).toEqual([
      ['module-platform-webhook', undefined, undefined],
    ]);
    expect(JSON.stringify(objects)).not.toContain('change-me');
  });
});

async function kustomize(folder: string): Promise<KubeObject[]> {
  const { stdout } = await promisify(execFile)('kubectl', ['kustomize', fileURLToPath(new URL(folder, ROOT))], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return parseManifests(stdout);
}

function withoutHelm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHelm);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value)
    .filter(([key]) => !OF_HELM.includes(key))
    .map(([key, child]) => [key, withoutHelm(child)] as const);
  return Object.fromEntries(
    entries.filter(
      ([key, child]) => !(['labels', 'annotations'].includes(key) && Object.keys(child as object).length === 0),
    ),
  );
}

function byKey(objects: readonly unknown[]): Record<string, KubeObject> {
  const all = objects as KubeObject[];
  const keyed = all.map((object) => [
    `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`,
    object,
  ]);
  expect(new Set(keyed.map(([key]) => key)).size).toBe(all.length);
  return Object.fromEntries(keyed);
}

describe('the chart', () => {
  it('has the version of the program', () => {
    const { version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
    const chart = parse(readFileSync(new URL('Chart.yaml', CHART), 'utf8'));
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
  });

  it('is built by a Helm that is pinned by version and by sum', () => {
    for (const { folder, version, package: path } of Object.values(GO_TOOLS)) {
      const read = (file: string): string =>
        readFileSync(new URL(`test/support/go-tools/${folder}/${file}`, ROOT), 'utf8');
      const module = path.replace(/\/cmd\/\w+$/, '');
      expect(read('go.mod')).toMatch(new RegExp(`^(tool |\t)${path}$`, 'm'));
      expect(read('go.mod')).toContain(`${module} ${version}`);
      expect(read('go.sum')).toContain(`${module} ${version} h1:`);
    }
  });

  it('installs the core alone, with two replicas, and its Secret is optional', async () => {
    const objects = await renderObjects({ values: MINIMAL });
    expect(objects.filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name)).toEqual([
      'module-controller',
    ]);
    const { spec } = objectOf(objects, 'Deployment', 'module-controller');
    expect([spec.replicas, spec.strategy.type]).toEqual([2, 'RollingUpdate']);
    const [container] = spec.template.spec.containers;
    expect(container.image).toBe('registry.example.com/module-controller:0.2.0');
    expect(container.envFrom).toContainEqual({ secretRef: { name: 'module-controller-mqtt', optional: true } });
    expect(spec.template.spec.serviceAccountName).toBe('module-controller');
  });

  it('gives the platform webhooks and rights of the controllers that are on, and no others', async () => {
    const objectsOf = (controllers: readonly string[]) =>
      renderObjects({ values: { ...MINIMAL, platform: { enabled: true, controllers } } });
    const webhooksOf = (objects: readonly KubeObject[]): string[] =>
      objects
        .flatMap(({ kind, webhooks = [] }) => (kind.endsWith('WebhookConfiguration') ? webhooks : []))
        .map(({ name }) => name);
    const rightsOf = (objects: readonly KubeObject[]): string[] =>
      objects
        .filter(
          ({ kind, metadata }) => /^(Cluster)?Role$/.test(kind) && /^module-platform(-catalog)?$/.test(metadata.name),
        )
        .flatMap(({ rules }) => rules ?? [])
        .flatMap(({ resources, verbs }: { resources: string[]; verbs: string[] }) =>
          resources.flatMap((resource) => verbs.map((verb) => `${resource} ${verb}`)),
        );
    for (const controllers of [['peer', 'admission'], ['rollout'], ['export'], PLATFORM.map(({ name }) => name)]) {
      const on = PLATFORM.filter(({ name }) => controllers.includes(name));
      const objects = await objectsOf(controllers);
      const asks = controllers.includes('admission');
      const wanted = on.flatMap(({ webhooks = [] }) => webhooks.map(({ name }) => `${name}.platform.koupleless.io`));
      expect(webhooksOf(objects).sort()).toEqual(asks ? wanted.sort() : []);
      const declared = on
        .flatMap(accessOf)
        .flatMap(({ kind, subresource, verbs }) =>
          verbs.map((verb) => `${[kind.plural, subresource].filter(Boolean).join('/')} ${verb}`),
        );
      expect([...new Set(rightsOf(objects))].sort()).toEqual([...new Set(declared)].sort());
    }
  });

  it('is itself in any namespace, and under another name', async () => {
    const values = { ...MINIMAL, nameOverride: 'other', platform: { enabled: true } };
    const objects = await renderObjects({ values, namespace: 'elsewhere' });
    expect(JSON.stringify(objects)).not.toContain('koupleless-system');
    const core = objects.filter(({ metadata }) => !/^module-|koupleless\.io$/.test(metadata.name));
    expect(new Set(core.map(({ metadata }) => metadata.name))).toEqual(
      new Set([
        'other',
        'other-confinement',
        'other-confinement-leases',
        'other-confinement-nodes',
        'other-kubelets',
        'other-metrics',
        'other-nodes',
      ]),
    );
    const users = objects
      .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
      .flatMap(({ spec }) => spec.matchConditions.map(({ expression }: KubeObject) => expression))
      .filter((expression: string) => expression.includes('username'));
    expect(users.sort()).toEqual(
      [...Array(3).fill('module-platform'), ...Array(3).fill('other')].map(
        (account) => `request.userInfo.username == 'system:serviceaccount:elsewhere:${account}'`,
      ),
    );
    // Every name that something refers to is that of an object.
    const { spec } = objectOf(objects, 'Deployment', 'other');
    expect(objectOf(objects, 'ConfigMap', spec.template.spec.containers[0].envFrom[0].configMapRef.name)).toBeDefined();
    expect(objectOf(objects, 'ServiceAccount', spec.template.spec.serviceAccountName)).toBeDefined();
  });

  it('starts the Pods again when a variable changes, and only then', async () => {
    const sumOf = async (values: object): Promise<string> => {
      const objects = await renderObjects({ values });
      const { annotations } = objectOf(objects, 'Deployment', 'module-controller').spec.template.metadata;
      return annotations['checksum/config'];
    };
    const before = await sumOf(MINIMAL);
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    expect(await sumOf({ ...MINIMAL, replicas: 3 })).toBe(before);
    expect(await sumOf({ ...MINIMAL, config: { ...MINIMAL.config, LOG_LEVEL: 'debug' } })).not.toBe(before);
  });

  it('gives the program variables that it takes', async () => {
    const config = { ...HTTP.config, MAX_VNODES: 100_000, REBALANCE: false, INSTALL_DEADLINE_SECONDS: 86_400 };
    const objects = await renderObjects({ values: { ...HTTP, config } });
    const { data } = objectOf(objects, 'ConfigMap', 'module-controller');
    expect(data).toMatchObject({ MAX_VNODES: '100000', REBALANCE: 'false', INSTALL_DEADLINE_SECONDS: '86400' });
    const pod = { POD_NAME: 'a', POD_NAMESPACE: 'koupleless-system', POD_IP: '10.244.0.7' };
    const loaded = loadConfig({ ...data, ...pod, MEMBER_TOKEN: '0123456789abcdef' }, 'host');
    expect(loaded).toMatchObject({ newBases: { maxVNodes: 100_000 }, cluster: { rebalance: false } });
  });

  it('mounts the certificates of the broker', async () => {
    const values = { ...MINIMAL, mqttTls: { caSecret: 'ca', clientSecret: 'client' } };
    const { spec } = objectOf(await renderObjects({ values }), 'Deployment', 'module-controller').spec.template;
    const [{ env, volumeMounts }] = spec.containers;
    const secretOf = (path: string): string => {
      const mount = volumeMounts.find(({ mountPath }: KubeObject) => path.startsWith(`${mountPath}/`));
      return spec.volumes.find(({ name }: KubeObject) => name === mount.name).secret.secretName;
    };
    const paths = env.filter(({ name }: KubeObject) => /^MQTT_.*_PATH$/.test(name));
    expect(paths.map(({ name, value }: KubeObject) => [name, secretOf(value), value.split('/').at(-1)])).toEqual([
      ['MQTT_CA_PATH', 'ca', 'ca.crt'],
      ['MQTT_CLIENT_CRT_PATH', 'client', 'tls.crt'],
      ['MQTT_CLIENT_KEY_PATH', 'client', 'tls.key'],
    ]);
  });

  it.each([
    ['no image', { config: MINIMAL.config }, 'image.repository is not set'],
    ['no tunnel', { image: MINIMAL.image }, 'no tunnel is on'],
    ['no broker', { ...MINIMAL, config: { ENABLE_MQTT_TUNNEL: true } }, 'config.MQTT_BROKER is required'],
    ['no key of the replicas', { ...HTTP, existingSecret: '' }, 'existingSecret is required'],
    ['two that share nothing', { ...MINIMAL, config: { ...MINIMAL.config, IS_CLUSTER: false } }, 'replicas must be 1'],
    ['a password for all to read', { ...MINIMAL, config: { ...MINIMAL.config, MQTT_PASSWORD: 'x' } }, 'MQTT_PASSWORD'],
    ['a variable that there is not', { ...MINIMAL, config: { ...MINIMAL.config, MQTT_BROKR: 'x' } }, 'MQTT_BROKR'],
    ['a value that there is not', { ...MINIMAL, replica: 2 }, 'replica'],
    ['a number out of range', { ...MINIMAL, config: { ...MINIMAL.config, MQTT_PORT: 70_000 } }, '/config/MQTT_PORT'],
    [
      'networks that are none',
      { ...MINIMAL, config: { ...MINIMAL.config, BASE_NETWORKS: 'nonsense' } },
      'BASE_NETWORKS',
    ],
    [
      'a network too many',
      { ...MINIMAL, config: { ...MINIMAL.config, BASE_NETWORKS: '10.0.0.0/8,' } },
      'BASE_NETWORKS',
    ],
    ['an ENV that no label takes', { ...MINIMAL, config: { ...MINIMAL.config, ENV: 'a b' } }, '/config/ENV'],
    ['a controller that there is not', { ...MINIMAL, platform: { controllers: ['vk'] } }, '/platform/controllers/0'],
    [
      'a network policy without the networks of bases',
      { ...HTTP, config: { ENABLE_HTTP_TUNNEL: true }, networkPolicy: { enabled: true } },
      'networkPolicy.baseNetworks',
    ],
    [
      'egress without the API server',
      { ...MINIMAL, networkPolicy: { enabled: true, egress: { enabled: true } } },
      'networkPolicy.egress.apiServerNetworks is required',
    ],
  ])('refuses %s', async (_what, values, message) => {
    await expect(renderObjects({ values })).rejects.toThrow(message);
  });

  it.each(['10.0.0.0/8', '10.244.0.0/16, 2001:db8::/32', '::/0', '::ffff:10.0.0.0/104', '', null])(
    'takes the networks %j',
    async (networks) => {
      const values = { ...MINIMAL, config: { ...MINIMAL.config, BASE_NETWORKS: networks } };
      const { data } = objectOf(await renderObjects({ values }), 'ConfigMap', 'module-controller');
      expect(data.BASE_NETWORKS ?? null).toBe(networks);
      if (networks) expect(rules.networks.parse(networks)).toBeDefined();
    },
  );

  it('knows every variable: of the core, of the platform, of the Pod, or secret', () => {
    const secret = Object.entries(VARIABLES).filter(([, { meaning }]) =>
      / never logged\.| Never logged\./.test(meaning),
    );
    expect(secret.map(([name]) => name).sort()).toEqual([...SECRET_VARIABLES].sort());
    const known = [...variablesOfCore(), ...variablesOfPlatform(), ...SECRET_VARIABLES];
    expect(Object.keys(VARIABLES).filter((name) => !(known as string[]).includes(name))).toEqual([
      'KUBECONFIG',
      'CONTROLLERS',
      'CLIENT_ID',
      'POD_NAME',
      'POD_NAMESPACE',
      'POD_IP',
    ]);
  });

  it('runs as the user of the image, as another one, or as the one that the cluster chooses', async () => {
    const usersOf = async (runAsUser?: number | null): Promise<unknown[]> => {
      const values = { ...MINIMAL, platform: { enabled: true }, ...(runAsUser !== undefined && { runAsUser }) };
      const objects = await renderObjects({ values });
      return ['module-controller', 'module-platform'].map((name) => {
        const { securityContext } = objectOf(objects, 'Deployment', name).spec.template.spec;
        expect(securityContext.runAsNonRoot).toBe(true);
        return [securityContext.runAsUser, securityContext.runAsGroup];
      });
    };
    const twice = (user: unknown): unknown[] => [
      [user, user],
      [user, user],
    ];
    expect(await usersOf()).toEqual(twice(65532));
    expect(await usersOf(1000700000)).toEqual(twice(1000700000));
    expect(await usersOf(null)).toEqual(twice(undefined));
  });

  it('lets in by its NetworkPolicy bases and replicas, the API server, and who reads metrics', async () => {
    const networkPolicy = { enabled: true, apiServerNetworks: ['192.0.2.0/24'], balancerNetworks: ['198.51.100.0/24'] };
    const objects = await renderObjects({ values: { ...HTTP, networkPolicy, platform: { enabled: true } } });
    const inputsOf = (name: string) => {
      const { ingress, policyTypes } = objectOf(objects, 'NetworkPolicy', name).spec;
      expect(policyTypes).toEqual(['Ingress']);
      return Object.fromEntries(ingress.map(({ ports, from = 'anywhere' }: KubeObject) => [ports[0].port, from]));
    };
    const anyPod = [{ namespaceSelector: {} }];
    expect(inputsOf('module-controller')).toEqual({
      probes: 'anywhere',
      metrics: anyPod,
      'http-tunnel': [
        { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'module-controller' } } },
        { ipBlock: { cidr: '10.244.0.0/16' } },
      ],
    });
    expect(inputsOf('module-platform')).toEqual({
      probes: 'anywhere',
      metrics: anyPod,
      webhooks: [{ ipBlock: { cidr: '192.0.2.0/24' } }],
      9444: [{ ipBlock: { cidr: '198.51.100.0/24' } }],
    });
    // A port that a policy names is one of the container.
    for (const name of ['module-controller', 'module-platform']) {
      const [{ ports }] = objectOf(objects, 'Deployment', name).spec.template.spec.containers;
      const named = ports.map((port: KubeObject) => port.name);
      expect(Object.keys(inputsOf(name)).filter((port) => !/^\d+$/.test(port) && !named.includes(port))).toEqual([]);
    }
  });

  it('lets out DNS, the API server, the broker, bases and replicas when asked to', async () => {
    const values = {
      ...HTTP,
      config: { ...HTTP.config, ...MINIMAL.config, MQTT_PORT: 8883 },
      networkPolicy: {
        enabled: true,
        egress: { enabled: true, apiServerNetworks: ['192.0.2.1/32'], brokerNetworks: ['192.0.2.2/32'] },
      },
    };
    const { spec } = objectOf(await renderObjects({ values }), 'NetworkPolicy', 'module-controller');
    const out = spec.egress.map(({ ports = [], to }: KubeObject) => [
      ports.map(({ port }: KubeObject) => port),
      to.map(({ ipBlock, podSelector }: KubeObject) => ipBlock?.cidr ?? podSelector.matchLabels),
    ]);
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(out).toEqual([
      [[53, 53], [{ 'k8s-app': 'kube-dns' }]],
      [[443, 6443], ['192.0.2.1/32']],
      [[8883], ['192.0.2.2/32']],
      [[7777], [{ 'app.kubernetes.io/name': 'module-controller' }]],
      [[], ['10.244.0.0/16']],
    ]);
  });

  it('has runbooks where they are served, and a label that Grafana looks for', async () => {
    const monitoring = {
      prometheusRule: { enabled: true, runbookBaseUrl: 'https://docs.example.com/mc/', labels: { release: 'x' } },
      dashboard: { enabled: true },
    };
    const objects = await renderObjects({ values: { ...MINIMAL, nameOverride: 'other', monitoring } });
    const rule = objectOf(objects, 'PrometheusRule', 'other');
    const [first] = rule.spec.groups[0].rules;
    expect(first.annotations.runbook_url).toBe('https://docs.example.com/mc/docs/runbooks.md#modulecontrollerdown');
    expect(first.expr).toBe('absent(up{job="other"} == 1)');
    expect(JSON.stringify(rule.spec)).not.toMatch(/job=[~\\"]*module-controller/);
    expect(rule.metadata.labels.release).toBe('x');
    const { metadata, data } = objectOf(objects, 'ConfigMap', 'other-dashboard');
    expect(metadata.labels.grafana_dashboard).toBe('1');
    // Grafana takes one dashboard of a title, and one of a uid.
    const { title, uid } = JSON.parse(data['other.json']);
    expect([title, uid]).toEqual(['Module Controller (other)', 'other']);
    expect(data['other.json']).not.toMatch(/job=[~\\"]*module-controller/);
  });

  it.each([
    [true, ['module-controller', 'module-platform']],
    [false, ['module-controller']],
  ])('has alerts of the platform where that is enabled: %s', async (enabled, groups) => {
    const values = { ...MINIMAL, monitoring: { prometheusRule: { enabled: true } }, platform: { enabled } };
    const { spec } = objectOf(await renderObjects({ values }), 'PrometheusRule', 'module-controller');
    expect(spec.groups.map(({ name }: { name: string }) => name)).toEqual(groups);
  });
});

describe('the policies that confine the accounts', () => {
  const WRITES = ['create', 'update', 'patch', 'delete', 'deletecollection', '*'];
  it.each([
    ['module-controller', ['', '-leases']],
    ['module-platform', ['', '-leases', '-scale']],
  ])('are about all that %s may write', async (account, suffixes) => {
    const objects = await renderObjects({ values: await kustomizeValues() });
    const policies = suffixes.map((suffix) => {
      const policy = objectOf(objects, 'ValidatingAdmissionPolicy', `${account}-confinement${suffix}`);
      const binding = objectOf(objects, 'ValidatingAdmissionPolicyBinding', policy.metadata.name);
      expect(policy.spec.failurePolicy).toBe('Fail');
      expect(binding.spec).toMatchObject({ policyName: policy.metadata.name, validationActions: ['Deny'] });
      return policy;
    });
    const namesOf = ({ apiGroups, resources }: KubeObject): string[] =>
      apiGroups.flatMap((group: string) => resources.map((resource: string) => `${group}/${resource}`));
    const named = [account, `${account}-catalog`];
    const roles = objects.filter(
      ({ kind, metadata }) => /^(Cluster)?Role$/.test(kind) && named.includes(metadata.name),
    );
    const writing = roles
      .flatMap(({ rules }) => rules)
      .filter(({ verbs }) => verbs.some((verb: string) => WRITES.includes(verb)));
    const written = writing.filter(({ resourceNames }) => !resourceNames).flatMap(namesOf);
    expect(written.length).toBeGreaterThan(4);
    const operationsOf = new Map<string, string[]>();
    for (const rule of policies.flatMap(({ spec }) => spec.matchConstraints.resourceRules)) {
      for (const name of namesOf(rule)) {
        operationsOf.set(name, [...(operationsOf.get(name) ?? []), ...rule.operations].sort());
      }
    }
    const accesses = DEFINITIONS.filter(({ name }) => (name === CORE_NAME) === (account === 'module-controller'));
    const notConfined = new Set(
      accesses
        .flatMap(accessOf)
        .filter((access) => reasonNotConfined(access) !== undefined)
        .map(resourceOf),
    );
    const confined = [...operationsOf.keys()];
    expect(written.filter((name) => !confined.includes(name) && !notConfined.has(name))).toEqual([]);
    expect(confined.filter((name) => !writing.flatMap(namesOf).includes(name))).toEqual([]);
    for (const [name, operations] of operationsOf) {
      // A scale is neither created nor deleted.
      expect(operations).toEqual(name.endsWith('/scale') ? ['UPDATE'] : ['CREATE', 'DELETE', 'UPDATE']);
    }
  });

  it('are asked about every write of a Lease without the label of the program', async () => {
    const objects = await renderObjects({ values: await kustomizeValues() });
    const { matchConstraints } = objectOf(
      objects,
      'ValidatingAdmissionPolicy',
      'module-controller-confinement-leases',
    ).spec;
    expect(matchConstraints.objectSelector).toEqual({
      matchExpressions: [
        { key: labels.COMPONENT_LABEL, operator: 'NotIn', values: [labels.COMPONENT.lease, labels.COMPONENT.member] },
      ],
    });
    // What the selector leaves out is limited by the role: no other namespace's Leases.
    const rules = objects
      .filter(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'module-controller')
      .flatMap((role) => role.rules);
    expect(rules.length).toBeGreaterThan(3);
    expect(rules.filter(({ resources }) => resources.includes('leases'))).toEqual([]);
  });

  it('know the names that the program gives', async () => {
    const text = readFileSync(new URL('deploy/confinement.yaml', ROOT), 'utf8');
    const prefixes = [...text.matchAll(/startsWith\('([^']+)'\)|\['(vnode\.)', '([^']+)'\]/g)].flatMap((found) =>
      found.slice(1),
    );
    const known = new Set(prefixes.filter((prefix) => prefix !== undefined));
    const names = [
      labels.nodeNameOf('base-1'),
      memberLeaseNameOf('Dev env', 'c'),
      `${recordNameOf('dev')}-0`,
      providerIdOf('dev', 'base-1'),
    ];
    for (const name of names) expect([...known].some((prefix) => name.startsWith(prefix))).toBe(true);
    expect(known).toEqual(new Set(['vnode.', 'module-controller.', 'module-controller-bases.', 'koupleless://']));
    expect(text).toContain(`'${labels.COMPONENT_LABEL}'`);
    expect(text).toContain(`'${labels.NODE_LEASE_NAMESPACE}'`);
  });
});

describe('the policies about the way to bases through the API server', () => {
  const text = textOf('base-proxy.yaml');
  const objects: KubeObject[] = documentsOf('base-proxy.yaml');
  const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');

  it('know the Pods and Nodes of the program, and have one exception', () => {
    const prefixes = [...text.matchAll(/startsWith\('([^']+)'\)/g)].map(([, prefix]) => prefix);
    expect(prefixes).toEqual([labels.NODE_NAME_PREFIX, labels.NODE_NAME_PREFIX]);
    const keys = new Set([...text.matchAll(/[\w.-]+\/component/g)].map(([key]) => key));
    expect([...keys]).toEqual([labels.COMPONENT_LABEL]);
    const exceptions = policies.map(({ spec }) => spec.matchConditions.at(-1));
    expect(exceptions[0]).toEqual(exceptions[1]);
    expect(exceptions[0].expression).toContain(`group('${labels.PLATFORM_GROUP}').resource('moduletenancies')`);
  });

  it('refuse what they cannot judge, and leave namespaces without modules alone', () => {
    expect(policies.map(({ spec }) => spec.failurePolicy)).toEqual(['Fail', 'Fail']);
    const [binding] = objects.filter(({ spec }) => spec.paramRef !== undefined);
    expect(binding?.spec.paramRef).toEqual({
      selector: { matchLabels: { [labels.COMPONENT_LABEL]: labels.COMPONENT.module } },
      parameterNotFoundAction: 'Allow',
    });
  });
});

describe('the manifests of the platform', () => {
  it('have policies about the same objects', () => {
    const policies = documentsOf('policies.yaml').filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    expect(policies.map(({ metadata }) => metadata.name)).toEqual([
      'module-pods',
      'module-tenancy',
      'module-export',
      'module-config-author',
    ]);
    const [first, second] = policies.map(({ spec }) => ({
      constraints: spec.matchConstraints,
      conditions: spec.matchConditions,
      failurePolicy: spec.failurePolicy,
    }));
    expect(first).toEqual(second);
  });

  it('take the same Services for exported in the webhook and in the policy', () => {
    const policy = documentsOf('policies.yaml').find(
      ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === 'module-export',
    );
    const webhooks = documentsOf('webhook.yaml').flatMap((object) => object.webhooks ?? []);
    const webhook = webhooks.find(({ name }) => name === 'services.platform.koupleless.io');
    expect(webhook.matchConditions[0].name).toBe('is-exported');
    expect(webhook.matchConditions).toEqual(policy.spec.matchConditions);
  });

  it('judge what is being deleted too, where what is judged changes', () => {
    const policies = documentsOf('policies.yaml').filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    const webhooks = documentsOf('webhook.yaml').flatMap((object) => object.webhooks ?? []);
    const judges = [...policies.map(({ metadata, spec }) => ({ name: metadata.name, ...spec })), ...webhooks];
    const blind = judges.filter((judge) => JSON.stringify(judge).includes('deletionTimestamp'));
    // A ModuleDeployment that is being deleted does nothing any more.
    expect(blind.map(({ name }) => name)).toEqual(['moduledeployments.platform.koupleless.io']);
    for (const { name, matchConditions } of judges.filter((judge) => judge.name.includes('module-')))
      expect([name, matchConditions.map((one: { name: string }) => one.name)]).toEqual([
        name,
        [expect.stringMatching(/^(has|is)-/), expect.stringMatching(/-change/)],
      ]);
    const [changes] = policies
      .flatMap(({ spec }) => spec.matchConditions)
      .filter(({ name }) => name === 'export-changes');
    const prefixes: string[] = [...changes.expression.matchAll(/startsWith\('([^']+)'\)/g)].map(([, prefix]) => prefix);
    for (const key of [...Object.values(labels.EXPORT_LABEL), ...Object.values(labels.EXPORT_ANNOTATION)])
      expect([key, prefixes.some((prefix) => key.startsWith(prefix))]).toEqual([key, true]);
  });

  it('have the keys of the sources', () => {
    const known = Object.values(labels).flatMap((value) =>
      typeof value === 'object' ? Object.values(value) : [value],
    );
    const keys = new Set([
      ...(textOf('policies.yaml').match(/[\w.-]*koupleless\.io\/[\w-]+/g) ?? []),
      ...(textOf('webhook.yaml').match(/[\w.-]*koupleless\.io\/[\w-]+/g) ?? []),
    ]);
    expect(keys.size).toBeGreaterThan(5);
    expect([...keys].filter((key) => !known.includes(key) && key !== 'platform.koupleless.io/v1alpha1')).toEqual([]);
  });

  it('stop nobody else when the webhook is away', () => {
    const webhooks = documentsOf('webhook.yaml').flatMap((object) => object.webhooks ?? []);
    expect(webhooks.length).toBeGreaterThan(2);
    for (const {
      name,
      failurePolicy,
      objectSelector,
      matchConditions,
      rules,
      sideEffects,
      timeoutSeconds,
    } of webhooks) {
      expect([name, sideEffects, timeoutSeconds]).toEqual([name, 'None', 5]);
      const isOurs = rules.every(
        ({ apiGroups }: { apiGroups: string[] }) => apiGroups.join() === labels.PLATFORM_GROUP,
      );
      expect([name, failurePolicy]).toEqual([name, isOurs ? 'Fail' : 'Ignore']);
      // Others never come to it: an annotation cannot be selected by.
      const isExport = /'BCSGROUP' in .* \|\| .*export-groups/s.test(matchConditions?.[0].expression);
      if (!isOurs && !isExport)
        expect([name, Object.keys(objectSelector.matchLabels)]).toEqual([name, [expect.any(String)]]);
    }
  });
});
