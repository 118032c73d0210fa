import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { workersOfThisMachine } from './test/support/workers.ts';

/**
 * The projects in the groups of `npm test`. Groups run one after the other, the projects of a group at the same time.
 * In a group, files start in the order of `test/support/durations.json`: `startOrder` in `test/support/durations.ts`.
 *
 * | Group | Project              | What it holds                                        | Other commands that run it  |
 * | ----- | -------------------- | ---------------------------------------------------- | --------------------------- |
 * | 1     | unit                 | pure code and single parts, architecture, pages      | check, test:unit            |
 * | 1     | tooling              | simulator, bench, demo, control plane, test support  | test:tooling                |
 * | 1     | calm                 | floods; what a tunnel costs, over HTTP               | test:attacks                |
 * | 1     | calm-aedes           | what a tunnel costs, over the project's own broker   | test:integration            |
 * | 1     | quiet-sharding       | several replicas that wait most of the time          | test:sharding               |
 * | 2     | integration          | files that need one transport only                   | test:integration            |
 * | 2     | integration-mosquitto | files for every transport, over Mosquitto            | test:integration:mosquitto  |
 * | 2     | integration-http     | the same files over HTTP                             | test:integration:http       |
 * | 2     | attacks              | attacks with real rights, without floods             | test:attacks                |
 * | 3     | e2e                  | bases on real JVMs                                   | test:e2e                    |
 * | 4     | sharding             | several replicas and their faults                    | test:sharding               |
 * | 4     | unit-properties      | unit tests with many cases                           |                             |
 * | 4     | checks               | types and lint                                       | check does the same         |
 *
 * `npm test` leaves these out; `npm run test:long` runs them:
 *
 * | Group | Project        | What it holds                                                                       |
 * | ----- | -------------- | ----------------------------------------------------------------------------------- |
 * | 5     | long-aedes     | files for every transport over the project's own broker; the sample control plane   |
 * | 6     | long-e2e       | installs of 90 s on a real JVM                                                      |
 * | 7     | long-sharding  | every fault of replicas, over each tunnel alone                                     |
 * | 8     | long-soak      | a small soak; `npm run test:soak` runs it too                                       |
 * | 9     | long-rollout   | a burst of rollouts                                                                 |
 * | 10    | long-properties| unit-properties with ten times as many cases                                        |
 * | 11    | long-dashboard | the dashboard on a real Prometheus                                                  |
 * | 12    | long-traffic   | calls through HAProxy and EndpointSlices during updates and faults                  |
 */
const WORKERS = await workersOfThisMachine();

/** What every transport has to pass: over a real Mosquitto and over HTTP, and in `test:long` over our own broker too. */
const ON_ALL_TRANSPORTS = [
  'base-life',
  'controller-restart',
  'discovery',
  'env',
  'first-contact',
  'handover',
  'lossless',
  'module-life',
  'one-watch',
  'versions',
  'workloads',
];
/** Figures of a tunnel: over our own broker and over HTTP, since which broker it is makes no difference. */
const BY_TUNNEL = ['cost'];
/**
 * What is measured there, and by the figures of a tunnel, needs CPU time that other files would take: they run first,
 * beside unit tests, which leave it to them, and files that wait most of the time.
 */
const FLOODS = 'test/attacks/floods.test.ts';
const CALM = { groupOrder: 1, maxWorkers: WORKERS.calm };
const WITH_MOSQUITTO_ONLY = ['mosquitto'];
/** The sample control plane itself, which all other files use, and what restarts all of it: `test:long` runs them. */
const OF_THE_CONTROL_PLANE = ['control-plane', 'restored-etcd'];
/** Several replicas and their faults: each file names its tunnels itself. */
const SHARDING = ['sharding-api', 'sharding-processes', 'sharding-replicas'];
/** On a fast machine all of {@link SHARDING} at a time, and one worker for what takes the CPU time that they leave. */
const REPLICAS = { groupOrder: 4, maxWorkers: WORKERS.replicas };
/** They wait most of the time: they run beside those that need calm. */
const QUIET_SHARDING = ['sharding-names', 'upgrade'];

/**
 * Two announcements of all bases at once are more than two cores bear, so the second and the third wait until a part of
 * the unit tests beside them is done.
 */
const LATE_STARTS = [
  { project: 'calm', path: 'test/integration/cost.test.ts', afterShare: 0.35 },
  { project: 'calm', path: FLOODS, afterShare: 0.6 },
];

function filesOf(names: readonly string[]): string[] {
  return names.map((name) => `test/integration/${name}.test.ts`);
}

/** Generous: a slow machine is no fault. Times that are promised stand in the tests. */
const TIMEOUTS = { testTimeout: 180_000, hookTimeout: 180_000 };

interface IntegrationOptions {
  readonly include: string[];
  readonly exclude?: string[];
  readonly groupOrder?: number;
  readonly maxWorkers?: number;
}

function integration(name: string, transport: string, { groupOrder = 2, maxWorkers, ...files }: IntegrationOptions) {
  return {
    test: {
      name,
      ...files,
      ...(maxWorkers === undefined ? {} : { maxWorkers }),
      env: { TEST_TRANSPORT: transport },
      globalSetup: ['test/integration/global-setup.ts'],
      ...TIMEOUTS,
      sequence: { groupOrder },
    },
  };
}

/** On real JVMs. `isLong`: installs take 90 s instead of 35 s. */
function e2e(name: string, include: string, { isLong, groupOrder }: { isLong: boolean; groupOrder: number }) {
  return {
    test: {
      name,
      include: [include],
      // Its bases over MQTT have a broker beside it.
      env: { TEST_TRANSPORT: 'http', ...(isLong ? { TEST_LONG: 'true' } : {}) },
      globalSetup: ['test/integration/global-setup.ts', 'test/e2e/global-setup.ts'],
      ...TIMEOUTS,
      // By themselves, and few at a time: a JVM that starts takes both cores for seconds.
      maxWorkers: WORKERS.e2e,
      sequence: { groupOrder },
    },
  };
}

/** Several replicas: few at a time, since the time to replace a lost one is promised, and a cluster takes a core. */
function sharding(
  name: string,
  include: string[],
  { maxWorkers, groupOrder }: { maxWorkers: number; groupOrder: number },
) {
  return {
    test: {
      name,
      include,
      globalSetup: ['test/integration/global-setup.ts'],
      ...TIMEOUTS,
      maxWorkers,
      sequence: { groupOrder },
    },
  };
}

/** `npm run test:mutants` runs it too. */
export const UNIT = {
  name: 'unit',
  include: ['test/unit/**/*.test.ts', 'test/architecture.test.ts'],
  // Nothing here waits for a clock; a machine under load is no fault.
  testTimeout: TIMEOUTS.testTimeout,
  expect: { poll: { timeout: 30_000 } },
  setupFiles: ['test/unit/setup.ts'],
  maxWorkers: CALM.maxWorkers,
  // Half of the CPU time would go into imports, for each file again.
  isolate: false,
  sequence: { groupOrder: CALM.groupOrder },
};

/** Properties with many cases, whose number is that of `runsOf`: most of the CPU time of all unit tests. */
const LONG_PROPERTIES = [
  'test/unit/kube/leader-simulation.test.ts',
  'test/unit/lease/simulation*.test.ts',
  'test/unit/pod/base-plan-properties.test.ts',
  'test/unit/pod/base-plan-simulation.test.ts',
  'test/unit/platform/rollout/rollout-simulation.test.ts',
  'test/unit/pod/command-conflicts.test.ts',
  'test/unit/pod/handover-model.test.ts',
  'test/unit/vnode/convergence.test.ts',
];
/** A watch that is cut at each of its bytes takes as long as they do. */
const EVERY_CUT = 'test/unit/kube/informer-cuts.test.ts';

/** Types and style of the whole tree, at the lowest priority. */
const CHECKS = {
  name: 'checks',
  include: ['test/checks.test.ts'],
  ...TIMEOUTS,
  maxWorkers: REPLICAS.maxWorkers,
  sequence: { groupOrder: REPLICAS.groupOrder },
};

/** `npm test` runs all but those named `long-…`, which `npm run test:long` runs. */
export default defineConfig({
  test: {
    maxWorkers: WORKERS.integration,
    sequence: { sequencer: longestFirst(LATE_STARTS) },
    projects: [
      { test: { ...UNIT, exclude: [...LONG_PROPERTIES, EVERY_CUT] } },
      {
        test: {
          ...UNIT,
          name: 'unit-properties',
          include: [...LONG_PROPERTIES, EVERY_CUT],
          maxWorkers: REPLICAS.maxWorkers,
          sequence: { groupOrder: REPLICAS.groupOrder },
        },
      },
      { test: { ...UNIT, name: 'tooling', include: ['test/tooling/**/*.test.ts'] } },
      { test: CHECKS },
      integration('integration', 'aedes', {
        include: ['test/integration/**/*.test.ts'],
        exclude: filesOf([
          ...BY_TUNNEL,
          ...WITH_MOSQUITTO_ONLY,
          ...SHARDING,
          ...QUIET_SHARDING,
          ...ON_ALL_TRANSPORTS,
          ...OF_THE_CONTROL_PLANE,
        ]),
      }),
      integration('integration-mosquitto', 'mosquitto', {
        include: filesOf([...ON_ALL_TRANSPORTS, ...WITH_MOSQUITTO_ONLY]),
      }),
      integration('integration-http', 'http', { include: filesOf(ON_ALL_TRANSPORTS) }),
      integration('attacks', 'http', { include: ['test/attacks/**/*.test.ts'], exclude: [FLOODS] }),
      integration('calm', 'http', { include: [FLOODS, ...filesOf(BY_TUNNEL)], ...CALM }),
      integration('calm-aedes', 'aedes', { include: filesOf(BY_TUNNEL), ...CALM }),
      sharding('quiet-sharding', filesOf(QUIET_SHARDING), CALM),
      e2e('e2e', 'test/e2e/**/*.test.ts', { isLong: false, groupOrder: 3 }),
      sharding('sharding', filesOf(SHARDING), REPLICAS),
      integration('long-aedes', 'aedes', {
        include: filesOf([...ON_ALL_TRANSPORTS, ...OF_THE_CONTROL_PLANE]),
        groupOrder: 5,
      }),
      e2e('long-e2e', 'test/e2e/slow-install.test.ts', { isLong: true, groupOrder: 6 }),
      sharding('long-sharding', ['test/long/sharding-*.test.ts'], { maxWorkers: 2, groupOrder: 7 }),
      // Ten times as many cases of the properties whose cases take long.
      {
        test: {
          ...UNIT,
          name: 'long-properties',
          include: LONG_PROPERTIES,
          env: { PROPERTY_RUNS_FACTOR: '10' },
          testTimeout: 1_800_000,
          sequence: { groupOrder: 10 },
        },
      },
      integration('long-rollout', 'aedes', { include: ['test/long/rollout-burst.test.ts'], groupOrder: 9 }),
      integration('long-dashboard', 'aedes', { include: ['test/long/dashboard.test.ts'], groupOrder: 11 }),
      integration('long-traffic', 'aedes', { include: ['test/long/balancer-traffic.test.ts'], groupOrder: 12 }),
      // What is measured there is memory: nothing else runs beside it.
      sharding('long-soak', ['test/long/soak.test.ts'], { maxWorkers: 1, groupOrder: 8 }),
    ],
  },
});
