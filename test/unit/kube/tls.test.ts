import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterAccess, TlsSettings } from '../../../src/kube/auth/cluster-access.ts';
import { createKubeLanes, type KubeLanes } from '../../../src/kube/transport/kube-lanes.ts';
import type { RestLane } from '../../../src/kube/transport/rest-lane.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { type Identity, TestAuthority } from './support/certificates.ts';
import { staticAccess } from './support/rig.ts';
import { ScriptedServer } from './support/scripted-server.ts';

describe('lanes over TLS', () => {
  let authority: TestAuthority;
  let other: TestAuthority;
  let identity: Identity;
  let server: ScriptedServer;
  let lanes: KubeLanes | undefined;

  beforeAll(() => {
    authority = new TestAuthority();
    other = new TestAuthority();
    identity = authority.issue('server', 'DNS:kubernetes');
  });
  afterAll(() => {
    authority.remove();
    other.remove();
  });
  beforeEach(async () => {
    server = await ScriptedServer.start({ ...identity, ca: authority.ca });
  });
  afterEach(async () => {
    await lanes?.close();
    await server.close();
  });

  const connect = (access: ClusterAccess): KubeLanes => {
    lanes = createKubeLanes({ access, clock: new FakeClock(), metrics: createMetrics() });
    return lanes;
  };
  const accessWith = (tls: Partial<TlsSettings>): ClusterAccess => ({
    ...staticAccess(new URL(`https://127.0.0.1:${server.port}`)),
    tls: () => ({ rejectUnauthorized: true, ...tls }),
  });
  const ask = async (tls: Partial<TlsSettings>): Promise<unknown> => {
    const answer = connect(accessWith(tls)).rest.request({ method: 'GET', path: '/version' });
    const exchange = server.next();
    return Promise.race([
      answer,
      exchange.then((one) => {
        one.reply(200, { client: one.clientName ?? 'nobody' });
        return answer;
      }),
    ]);
  };

  it('talks to a server of the CA under the name it is to have', async () => {
    expect(await ask({ ca: authority.ca, servername: 'kubernetes' })).toEqual({ client: 'nobody' });
  });

  it.each<[string, () => Partial<TlsSettings>]>([
    ['of another CA', () => ({ ca: other.ca, servername: 'kubernetes' })],
    ['of a CA unknown to the system', () => ({ servername: 'kubernetes' })],
    ['with another name', () => ({ ca: authority.ca })],
  ])('refuses a server %s', async (_what, tls) => {
    await expect(ask(tls())).rejects.toMatchObject({ code: 'Kube.ConnectionFailed' });
    expect(server.count).toBe(0);
  });

  it('talks to any server when told to', async () => {
    expect(await ask({ rejectUnauthorized: false })).toEqual({ client: 'nobody' });
  });

  it('shows its own certificate', async () => {
    const { cert, key } = authority.issue('controller', 'DNS:controller');
    expect(await ask({ ca: authority.ca, servername: 'kubernetes', cert, key })).toEqual({ client: 'controller' });
  });

  it('speaks HTTP/1.1, also with a server that would speak HTTP/2', async () => {
    const both = createSecureServer({ ...identity, allowHTTP1: true }, ({ httpVersion }, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ httpVersion }));
    });
    await new Promise<void>((resolve) => both.listen(0, '127.0.0.1', resolve));
    const access = {
      ...accessWith({ ca: authority.ca, servername: 'kubernetes' }),
      server: new URL(`https://127.0.0.1:${(both.address() as AddressInfo).port}`),
    };
    expect(await connect(access).rest.request({ method: 'GET', path: '/version' })).toEqual({ httpVersion: '1.1' });
    await lanes?.close();
    await new Promise((resolve) => both.close(resolve));
  });

  it('makes new connections when the CA changes, and lets running requests end', async () => {
    let ca = other.ca;
    let change = (): void => {};
    const { rest } = connect({
      ...accessWith({}),
      tls: () => ({ ca, servername: 'kubernetes', rejectUnauthorized: true }),
      onTlsChange: (listener) => {
        const before = change;
        change = () => {
          before();
          listener();
        };
      },
    });
    const get = { method: 'GET', path: '/version' } as const;
    await expect(rest.request(get)).rejects.toMatchObject({ code: 'Kube.ConnectionFailed' });
    ca = authority.ca;
    change();
    const running = rest.request(get);
    const first = await server.next();
    change();
    await settle();
    const next = rest.request(get);
    const second = await server.next();
    expect(second.port).not.toBe(first.port);
    second.reply(200, { n: 2 });
    first.reply(200, { n: 1 });
    expect([await running, await next]).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it('resumes the TLS session of another lane, until the certificates change', async () => {
    let settings: TlsSettings = { ca: authority.ca, servername: 'kubernetes', rejectUnauthorized: true };
    const listeners: (() => void)[] = [];
    const { rest, leases, members } = connect({
      ...accessWith({}),
      tls: () => settings,
      onTlsChange: (listener) => void listeners.push(listener),
    });
    const isResumed = async (lane: RestLane): Promise<boolean> => {
      const answer = lane.request({ method: 'GET', path: '/version' });
      const exchange = await server.next();
      exchange.reply(200, {});
      await answer;
      return exchange.isResumed;
    };
    expect(await isResumed(rest)).toBe(false);
    expect(await isResumed(leases)).toBe(true);
    settings = { ...settings };
    for (const change of listeners) change();
    expect(await isResumed(members)).toBe(false);
    expect(await isResumed(rest)).toBe(true);
  });
});
