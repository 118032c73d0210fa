import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterAccess } from '../../../src/kube/auth/cluster-access.ts';
import { loadClusterAccess } from '../../../src/kube/auth/kubeconfig.ts';
import { RefreshingAccess } from '../../../src/kube/auth/refreshing-access.ts';
import { silentLogger } from '../../../src/logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TestAuthority } from './support/certificates.ts';
import { KubeconfigDir } from './support/kubeconfig-dir.ts';
import { capturedLogger } from './support/rig.ts';
import { until } from './support/until.ts';

let authority: TestAuthority;
let other: TestAuthority;
beforeAll(() => {
  authority = new TestAuthority();
  other = new TestAuthority();
});
afterAll(() => {
  authority.remove();
  other.remove();
});

describe('access through files that change', () => {
  let dir: KubeconfigDir;
  let clock: FakeClock;
  let access: ClusterAccess;
  let tlsChanges: number;
  let running: Promise<void>;
  const abort = { controller: new AbortController() };
  const { logger, lines } = capturedLogger();

  beforeEach(async () => {
    dir = new KubeconfigDir();
    clock = new FakeClock();
    abort.controller = new AbortController();
    dir.write('ca.crt', authority.ca);
    dir.write('token', 'one');
    access = await loadClusterAccess({ serviceAccountDir: dir.path, inClusterHost: 'h', clock, logger });
    tlsChanges = 0;
    access.onTlsChange(() => tlsChanges++);
    lines.length = 0;
    running = access.run(abort.controller.signal);
  });
  afterEach(async () => {
    abort.controller.abort();
    await running;
    dir.remove();
  });

  /** Lets a minute pass and the files be read. */
  const minute = async (): Promise<void> => {
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
    await until(() => clock.pending === 1, 'the end of the reading');
  };

  it('takes a new token within a minute, without touching connections', async () => {
    dir.write('token', 'two');
    clock.advance(59_999);
    expect(clock.pending).toBe(1);
    expect(access.authorization()).toBe('Bearer one');
    clock.advance(1);
    await until(() => access.authorization() === 'Bearer two', 'the new token');
    expect(tlsChanges).toBe(0);
  });

  it('tells of a new CA once', async () => {
    const before = access.tls();
    dir.write('ca.crt', other.ca);
    await minute();
    expect(tlsChanges).toBe(1);
    expect(access.tls()).not.toBe(before);
    expect(access.tls().ca).toBe(other.ca);
    await minute();
    expect(tlsChanges).toBe(1);
  });

  it('keeps what it has while a file is damaged', async () => {
    dir.write('token', 'two');
    dir.write('ca.crt', 'half written');
    await minute();
    expect([access.authorization(), access.tls().ca, tlsChanges]).toEqual(['Bearer one', authority.ca, 0]);
    expect(lines).toMatchObject([{ msg: 'credentials for the API server could not be read again' }]);
    dir.write('ca.crt', authority.ca);
    await minute();
    expect(access.authorization()).toBe('Bearer two');
  });

  it('reads the token at once after a 401', async () => {
    dir.write('token', 'two');
    expect(await access.onUnauthorized('Bearer one')).toBe(true);
    expect(access.authorization()).toBe('Bearer two');
  });

  it('says that a retry makes no sense when the token is still the same', async () => {
    expect(await access.onUnauthorized('Bearer one')).toBe(false);
  });

  it('says that a retry makes sense when another request has brought the new token', async () => {
    dir.write('token', 'two');
    const [first, second] = [access.onUnauthorized('Bearer one'), access.onUnauthorized('Bearer one')];
    expect([await first, await second, await access.onUnauthorized('Bearer one')]).toEqual([true, true, true]);
  });
});

describe('access through a credential plugin', () => {
  it('forces it after a 401, but not for each of many', async () => {
    const clock = new FakeClock();
    const calls: boolean[] = [];
    const plugin = async (isRejected: boolean) => {
      calls.push(isRejected);
      return { authorization: `Bearer ${calls.length}` };
    };
    const spec = { server: new URL('https://h'), isInsecure: false, plugin };
    clock.advance(60_000);
    const access = await RefreshingAccess.open(spec, { clock, logger: silentLogger });
    expect(await access.onUnauthorized('Bearer 1')).toBe(true);
    expect(await access.onUnauthorized('Bearer 2')).toBe(false);
    clock.advance(4999);
    expect(await access.onUnauthorized('Bearer 2')).toBe(false);
    clock.advance(1);
    expect(await access.onUnauthorized('Bearer 2')).toBe(true);
    expect(calls).toEqual([false, true, true]);
    expect(access.authorization()).toBe('Bearer 3');
  });

  it('uses the client certificate that it gives', async () => {
    const { cert, key } = authority.issue('plugin', 'DNS:plugin');
    const spec = { server: new URL('https://h'), isInsecure: false, plugin: async () => ({ cert, key }) };
    const access = await RefreshingAccess.open(spec, { clock: new FakeClock(), logger: silentLogger });
    expect(access.tls()).toMatchObject({ cert, key });
  });
});
