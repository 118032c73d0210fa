import { defineConfig } from 'vitest/config';

/** On which transports each file runs; a file that is not named here runs in `integration` only. */
const ON_ALL_TRANSPORTS = [
  'base-life',
  'controller-restart',
  'discovery',
  'env',
  'first-contact',
  'lossless',
  'module-life',
  'one-watch',
  'versions',
  'workloads',
];
/** Figures of a tunnel: which broker it is makes no difference. */
const BY_TUNNEL = ['cost'];
const WITH_MOSQUITTO_ONLY = ['mosquitto'];
/** Several replicas, their faults and their upgrade: each file names its tunnel itself. */
const SHARDING = ['sharding-mqtt', 'sharding-http', 'upgrade'];
/** What is measured there is memory: nothing else runs beside it. */
const SOAK = ['soak'];

function filesOf(names: readonly string[]): string[] {
  return names.map((name) => `test/integration/${name}.test.ts`);
}

function integration(name: string, transport: string, files: { include: string[]; exclude?: string[] }) {
  return {
    test: {
      name,
      ...files,
      env: { TEST_TRANSPORT: transport },
      globalSetup: ['test/integration/global-setup.ts'],
      // Generous: a slow machine is no fault. Times that are promised stand in the tests.
      testTimeout: 180_000,
      hookTimeout: 180_000,
      // After the unit tests.
      sequence: { groupOrder: 1 },
    },
  };
}

/** `npm run test:mutants` runs it too. */
export const UNIT = {
  name: 'unit',
  include: ['test/unit/**/*.test.ts', 'test/architecture.test.ts'],
  // Nothing here waits for a clock; a machine under load is no fault.
  testTimeout: 60_000,
};

export default defineConfig({
  test: {
    // Two cores carry three files of the integration tests, each with a control plane of its own: they mostly wait.
    maxWorkers: 3,
    projects: [
      { test: UNIT },
      integration('integration', 'aedes', {
        include: ['test/integration/**/*.test.ts'],
        exclude: filesOf([...WITH_MOSQUITTO_ONLY, ...SHARDING, ...SOAK]),
      }),
      integration('integration-mosquitto', 'mosquitto', {
        include: filesOf([...ON_ALL_TRANSPORTS, ...WITH_MOSQUITTO_ONLY]),
      }),
      integration('integration-http', 'http', { include: filesOf([...ON_ALL_TRANSPORTS, ...BY_TUNNEL]) }),
      integration('attacks', 'http', { include: ['test/attacks/**/*.test.ts'] }),
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          // Its bases over MQTT have a broker beside it.
          env: { TEST_TRANSPORT: 'http' },
          globalSetup: ['test/integration/global-setup.ts', 'test/e2e/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          // By themselves, and two files at a time: a JVM that starts takes both cores for seconds.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'sharding',
          include: filesOf(SHARDING),
          globalSetup: ['test/integration/global-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          // Nothing else runs beside two of these files: the time to replace a lost replica is promised.
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: 'soak',
          include: filesOf(SOAK),
          globalSetup: ['test/integration/global-setup.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
