/** Pod templates of users, right and wrong. */

/** What tests do to a manifest. */
// biome-ignore lint/suspicious/noExplicitAny: manifests of users, right and wrong
export type Change = (template: any, spec: any) => void;

const AFFINITY = 'spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution';

const required =
  (nodeSelectorTerms: unknown): Change =>
  ({ spec }) => {
    spec.affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
  };

/** What is wrong, how it is made, and what the answer says: a Deployment is refused for it too. */
export const BY_BOTH: readonly (readonly [string, Change, string])[] = [
  ['tolerations: "abc"', ({ spec }) => Object.assign(spec, { tolerations: 'abc' }), 'spec.template.spec.tolerations'],
  ['nodeSelectorTerms: "x"', required('x'), `${AFFINITY}.nodeSelectorTerms`],
  ['env: {}', ({ spec }) => Object.assign(spec.containers[0], { env: {} }), 'spec.template.spec.containers[0].env'],
  [
    'a label with NUL',
    ({ metadata }) => Object.assign(metadata.labels, { tier: 'a\u0000b' }),
    'spec.template.metadata.labels',
  ],
  [
    'a label with a key that is none',
    ({ metadata }) => Object.assign(metadata.labels, { 'a b': 'c' }),
    'spec.template.metadata.labels',
  ],
  [
    'a typing error in the spec',
    ({ spec }) => Object.assign(spec, { tolerationss: [] }),
    'unknown field "spec.template.spec.tolerationss"',
  ],
  [
    'a typing error in a container',
    ({ spec }) => Object.assign(spec.containers[0], { enviroment: [] }),
    'unknown field "spec.template.spec.containers[0].enviroment"',
  ],
  [
    'a toleration of every key without Exists',
    ({ spec }) => spec.tolerations.push({ value: 'x' }),
    'spec.template.spec.tolerations[2].operator',
  ],
  [
    'an effect that there is not',
    ({ spec }) => Object.assign(spec.tolerations[0], { effect: 'NoRun' }),
    'spec.template.spec.tolerations[0].effect',
  ],
  ['no node selector term', required([]), `${AFFINITY}.nodeSelectorTerms`],
  [
    'an operator without values',
    required([{ matchExpressions: [{ key: 'zone', operator: 'In' }] }]),
    `${AFFINITY}.nodeSelectorTerms[0].matchExpressions[0].values`,
  ],
  [
    'two containers with one name',
    ({ spec }) => spec.containers.push(spec.containers[0]),
    'spec.template.spec.containers[1]',
  ],
  [
    'a variable without a name',
    ({ spec }) => spec.containers[0].env.push({ name: '', value: 'x' }),
    'spec.template.spec.containers[0].env[1].name',
  ],
  [
    'a port that there is not',
    ({ spec }) => Object.assign(spec.containers[0], { ports: [{ containerPort: 70_000 }] }),
    'spec.template.spec.containers[0].ports[0].containerPort',
  ],
  [
    'memory that is none',
    ({ spec }) => Object.assign(spec.containers[0], { resources: { requests: { memory: '1 GB' } } }),
    'spec.template.spec.containers[0].resources.requests',
  ],
  [
    'a request above its limit',
    ({ spec }) => Object.assign(spec.containers[0], { resources: { requests: { cpu: 2 }, limits: { cpu: '1500m' } } }),
    'spec.template.spec.containers[0].resources.requests',
  ],
  [
    'a probe without a handler',
    ({ spec }) => Object.assign(spec.containers[0], { livenessProbe: { periodSeconds: 5 } }),
    'spec.template.spec.containers[0].livenessProbe',
  ],
  [
    'a mount of no volume',
    ({ spec }) => Object.assign(spec.containers[0], { volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
    'spec.template.spec.containers[0].volumeMounts',
  ],
];

/** What only a ModuleDeployment is refused for. */
export const BY_MODULE_DEPLOYMENTS: readonly (readonly [string, Change, string])[] = [
  [
    'tolerations: [null]',
    ({ spec }) => Object.assign(spec, { tolerations: [null] }),
    'spec.template.spec.tolerations[0]',
  ],
  ['nodeSelectorTerms: [null]', required([null]), `${AFFINITY}.nodeSelectorTerms[0]`],
  [
    'its own label in the selector',
    ({ metadata }, { selector }) => {
      for (const labels of [selector.matchLabels, metadata.labels]) labels['controller-revision-hash'] = 'mine';
    },
    'selector.matchLabels cannot have controller-revision-hash',
  ],
  [
    'an image that is no jar',
    ({ spec }) => Object.assign(spec.containers[0], { image: 'nginx' }),
    'image must be the address of a jar',
  ],
  [
    'batches without their strategy',
    (_template, spec) => Object.assign(spec, { strategy: { batch: { count: 2, needConfirm: true } } }),
    'batch has no effect without type: Batch',
  ],
  [
    'batches with another strategy',
    (_template, spec) => Object.assign(spec, { strategy: { type: 'RollingUpdate', batch: { count: 2 } } }),
    'batch has no effect without type: Batch',
  ],
  [
    'limits of a rolling update with another strategy',
    (_template, spec) => Object.assign(spec, { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } }),
    'rollingUpdate has no effect with type: Recreate and type: OnDelete',
  ],
  [
    'a deadline that is over before a Pod is available',
    (_template, spec) => Object.assign(spec, { minReadySeconds: 8, progressDeadlineSeconds: 8 }),
    'progressDeadlineSeconds (default 600) must be greater than minReadySeconds',
  ],
  [
    'the default deadline, which is over before a Pod is available',
    (_template, spec) => Object.assign(spec, { minReadySeconds: 600 }),
    'progressDeadlineSeconds (default 600) must be greater than minReadySeconds',
  ],
];

/** Each field at least once that a Deployment may have and a module does not use. */
export const RICH: Change = ({ metadata, spec }) => {
  Object.assign(metadata, { name: 'shop', creationTimestamp: null, annotations: { 'a/b': 'any\ntext' } });
  Object.assign(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    imagePullSecrets: [{ name: 'registry' }],
    hostAliases: [{ ip: '10.0.0.1', hostnames: ['a.example.com'] }],
    volumes: [
      { name: 'scratch', emptyDir: { sizeLimit: '1Gi' } },
      { name: 'none' },
      {
        name: 'claim',
        ephemeral: {
          volumeClaimTemplate: {
            metadata: { labels: { a: 'b' } },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        },
      },
    ],
    initContainers: [{ name: 'init', image: 'busybox', command: ['true'], restartPolicy: null }],
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: { matchLabels: {} } },
    ],
    readinessGates: [{ conditionType: 'example.com/ready' }],
  });
  spec.tolerations.push({ operator: 'Exists', effect: '' }, { key: 'a', operator: '', value: 'b', effect: null });
  Object.assign(spec.containers[0], {
    args: [],
    command: null,
    imagePullPolicy: '',
    resources: { requests: { cpu: 0.5, memory: 1_073_741_824 }, limits: { cpu: '1', memory: '2Gi' } },
    ports: [
      { containerPort: 80, name: 'http' },
      { containerPort: 80, protocol: 'UDP' },
    ],
    livenessProbe: { httpGet: { port: 'http', path: '/' }, periodSeconds: 5 },
    lifecycle: { preStop: { sleep: { seconds: 2 } } },
    volumeMounts: [{ name: 'scratch', mountPath: '/tmp' }],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  });
  spec.containers[0].env.push(
    { name: 'EMPTY', value: null },
    { name: 'WITH.DOT-and_more', value: '$(EMPTY)' },
    { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
  );
};
