import { expect, it } from 'vitest';
import { CrdInstaller } from '../../../src/assembly/crd-installer.ts';
import { type Crd, SCHEMA_ANNOTATION } from '../../../src/kube/crds.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { FakeCrds } from '../../support/fake-crds.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

function crdOf(plural: string): Crd {
  const names = { kind: plural, plural };
  return {
    metadata: { name: `${plural}.example.com`, annotations: { [SCHEMA_ANNOTATION]: '1' } },
    spec: { group: 'example.com', scope: 'Namespaced', names, versions: [{ name: 'v1', served: true, storage: true }] },
  };
}

function installerOf(crds: readonly Crd[], refusalOf: (name: string) => ApiError | undefined) {
  const [clock, fake, { lines, logger }] = [new FakeClock(), new FakeCrds(), recordingLogger()];
  const client = fake.clientOf('test');
  const checked: typeof client = {
    get: async (ref) => {
      const refusal = refusalOf(ref.name);
      if (refusal) throw refusal;
      return client.get(ref);
    },
    apply: (object, options) => client.apply(object, options),
  };
  const installer = new CrdInstaller({ crds, resources: { of: () => checked as never }, clock, logger });
  const stopping = new AbortController();
  const ended = installer.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await ended;
  };
  /** Looks of the installer come after waits. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 500) {
      await settle();
      clock.advance(500);
    }
    await settle();
  };
  return { installer, pass, lines, stop };
}

const forbidden = (): ApiError =>
  new ApiError('customresourcedefinitions "a" is forbidden', {
    status: 403,
    reason: 'Forbidden',
    retryAfterMs: undefined,
    causes: undefined,
  });

it('a CRD that is refused holds up itself alone, says what is missing, and is installed once it may be', async () => {
  let isRefused = true;
  const refusalOf = (name: string) => (isRefused && name === 'a.example.com' ? forbidden() : undefined);
  const { installer, pass, lines, stop } = installerOf([crdOf('a'), crdOf('b')], refusalOf);
  await pass(1_000);
  await installer.whenInstalled('b.example.com');
  expect(installer.readiness()).toEqual({
    'CRD a.example.com': 'customresourcedefinitions "a" is forbidden',
    'CRD b.example.com': true,
  });
  expect(lines.filter(({ level }) => level === 50)).toMatchObject([{ crd: 'a.example.com' }]);
  isRefused = false;
  await pass(31_000);
  await installer.whenInstalled('a.example.com');
  expect(installer.readiness()).toMatchObject({ 'CRD a.example.com': true });
  await stop();
});

it('a CRD is tried again soon after a refusal of an API server that has just started, and later less often', async () => {
  const startsFor = async (refusals: number, ms: number): Promise<boolean> => {
    let left = refusals;
    const { installer, pass, stop } = installerOf([crdOf('a')], () => (left-- > 0 ? forbidden() : undefined));
    await pass(ms);
    const isInstalled = installer.readiness()['CRD a.example.com'] === true;
    await stop();
    return isInstalled;
  };
  expect([await startsFor(1, 4_000), await startsFor(2, 8_000)]).toEqual([true, true]);
  expect([await startsFor(6, 55_000), await startsFor(6, 100_000)]).toEqual([false, true]);
});

it('a CRD is tried again soon after an answer that does not last', async () => {
  let left = 2;
  const busy = new ApiError('busy', { status: 500, reason: '', retryAfterMs: undefined, causes: undefined });
  const { installer, pass, stop } = installerOf([crdOf('a')], () => (left-- > 0 ? busy : undefined));
  await pass(5_000);
  await installer.whenInstalled('a.example.com');
  expect(installer.whenInstalled('c.example.com')).toBeUndefined();
  await stop();
});
