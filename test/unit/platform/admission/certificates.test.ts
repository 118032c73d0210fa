import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type CertificateState,
  nextStep,
  SERVING_LIFETIME_MS,
} from '../../../../src/platform/admission/certificate-plan.ts';
import {
  type Authority,
  authorityOf,
  type CertificateFacts,
  certificatesOf,
  isIssuedBy,
  type Serving,
  servingOf,
} from '../../../../src/platform/admission/certificates.ts';
import { issueServing, makeAuthority } from '../../../../src/platform/admission/issue-certificates.ts';
import { seededRandom } from '../../../../test/support/api-fault-proxy.ts';

const DAY_MS = 24 * 60 * 60_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const HOSTS = ['module-platform-webhook.koupleless-system.svc', '127.0.0.1'];

async function authorityAt(now: number): Promise<Authority> {
  const { cert, key } = await makeAuthority(now);
  const authority = authorityOf(certificatesOf(cert)[0], key);
  if (authority === undefined) throw new Error('no authority');
  return authority;
}

async function servingAt(authority: Authority, now: number, hosts = HOSTS): Promise<Serving> {
  const { cert, key } = await issueServing(authority, hosts, now);
  const serving = servingOf(cert, key);
  if (serving === undefined) throw new Error('no serving certificate');
  return serving;
}

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

describe('a certificate of the webhook server', () => {
  it('is accepted by a client that trusts its CA, under each of its names', async () => {
    const authority = await authorityAt(Date.now());
    const { certificate, key } = await servingAt(authority, Date.now());
    const server = createServer(
      { cert: certificate.pem, key },
      express().use((_request, response) => void response.end('ok')),
    );
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const ask = (ca: string, servername?: string) =>
      new Promise((resolve, reject) => {
        const options = { host: '127.0.0.1', port, ca, agent: false, ...(servername && { servername }) };
        request(options, ({ statusCode }) => resolve(statusCode))
          .on('error', reject)
          .end();
      });
    expect(await ask(authority.certificate.pem)).toBe(200);
    expect(await ask(authority.certificate.pem, HOSTS[0])).toBe(200);
    await expect(ask(authority.certificate.pem, 'other.example')).rejects.toThrow();
    await expect(ask((await authorityAt(Date.now())).certificate.pem)).rejects.toThrow();
  });

  it('is read with its names, its end and its issuer; what is no pair is none', async () => {
    const [authority, other] = [await authorityAt(START), await authorityAt(START + DAY_MS)];
    const serving = await servingAt(authority, START);
    expect(serving.hosts).toEqual(HOSTS);
    expect(serving.certificate.notAfter).toBe(START + SERVING_LIFETIME_MS);
    expect(isIssuedBy(serving.certificate, authority.certificate)).toBe(true);
    expect(isIssuedBy(serving.certificate, other.certificate)).toBe(false);
    expect(servingOf(serving.certificate.pem, other.key)).toBeUndefined();
    expect(servingOf('no certificate', serving.key)).toBeUndefined();
    expect(authorityOf(authority.certificate, other.key)).toBeUndefined();
    expect(authorityOf(undefined, other.key)).toBeUndefined();
    const bundle = `text\n${authority.certificate.pem}${other.certificate.pem}-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----`;
    expect(certificatesOf(bundle)).toEqual([other.certificate, authority.certificate]);
  });
});

/** Secret, configurations, and processes that each still serve what they have seen of the Secret. */
class CertificateWorld {
  now = START;
  hosts = HOSTS;
  bundle: readonly CertificateFacts[] = [];
  key = '';
  serving: Serving | undefined;
  trusted: (readonly CertificateFacts[])[] = [[], []];
  served: (Serving | undefined)[] = [];
  readonly steps: string[] = [];

  state(): CertificateState {
    const { now, hosts, bundle, serving, trusted } = this;
    return { now, hosts, bundle, authority: authorityOf(bundle[0], this.key), serving, trusted };
  }

  /** One step; how long until the next one, ms. */
  async step(): Promise<number> {
    const step = nextStep(this.state());
    if (step.kind !== 'Wait') this.steps.push(step.kind);
    if (step.kind === 'MakeAuthority') {
      const { certificate, key } = await authorityAt(this.now);
      this.bundle = [certificate, ...step.formerly];
      this.key = key;
    } else if (step.kind === 'Forget') this.bundle = step.bundle;
    else if (step.kind === 'Trust') this.trusted = this.trusted.map(() => this.bundle);
    else if (step.kind === 'Issue') this.serving = await servingAt(step.authority, this.now, this.hosts);
    return step.kind === 'Wait' ? step.ms : 0;
  }

  async settle(): Promise<number> {
    for (let steps = 0; steps < 20; steps++) {
      const ms = await this.step();
      if (ms > 60_000) return ms;
      this.now += ms;
    }
    throw new Error(`does not settle: ${this.steps.join()}`);
  }

  /** What is served now that a configuration does not accept. */
  refused(): unknown[] {
    const isAccepted = ({ certificate }: Serving, trusted: readonly CertificateFacts[]): boolean =>
      certificate.notAfter > this.now && trusted.some((authority) => isIssuedBy(certificate, authority));
    return this.served.filter((one) => one && !this.trusted.every((trusted) => isAccepted(one, trusted)));
  }
}

describe('the plan of certificates', () => {
  it('makes a CA, has it trusted, and serves a certificate of it', async () => {
    const world = new CertificateWorld();
    const ms = await world.settle();
    expect(world.steps).toEqual(['MakeAuthority', 'Trust', 'Issue']);
    expect(world.now).toBe(START);
    expect(ms).toBe(SERVING_LIFETIME_MS - 30 * DAY_MS);
  });

  it('serves over ten years what every configuration accepts, whichever process looks late', async () => {
    const random = seededRandom(7);
    const world = new CertificateWorld();
    await world.settle();
    world.served = [world.serving, world.serving, world.serving];
    const end = START + 3650 * DAY_MS;
    while (world.now < end) {
      const ms = await world.step();
      // A process sees the Secret at once, or up to 20 days late.
      world.served = world.served.map((one) => (random() < 0.7 ? world.serving : one));
      expect(world.refused()).toEqual([]);
      if (ms > 0) {
        const slept = Math.min(ms, 20 * DAY_MS);
        world.now += slept;
        if (slept > DAY_MS) world.served = world.served.map(() => world.serving);
      }
      expect(world.refused()).toEqual([]);
    }
    expect(world.steps.filter((kind) => kind === 'MakeAuthority').length).toBeGreaterThan(5);
    expect(world.steps).toContain('Forget');
    expect(Math.max(...world.trusted.map(({ length }) => length))).toBeLessThan(4);
  });

  it('waits with a new CA until it is trusted everywhere, and issues nothing of it before', async () => {
    const world = new CertificateWorld();
    await world.settle();
    world.now += 700 * DAY_MS;
    world.serving = await servingAt(authorityOf(world.bundle[0], world.key) as Authority, world.now);
    const former = world.serving;
    expect(await world.step()).toBe(0);
    expect(await world.step()).toBe(0);
    expect(world.steps.slice(-2)).toEqual(['MakeAuthority', 'Trust']);
    expect(world.trusted.map(({ length }) => length)).toEqual([2, 2]);
    const waits = await world.step();
    expect(waits).toBe(30_000);
    expect(world.serving).toBe(former);
    world.now += waits;
    await world.step();
    expect(isIssuedBy((world.serving as Serving).certificate, world.bundle[0] as CertificateFacts)).toBe(true);
  });

  it('trusts the former CA too when somebody has emptied the Secret, and serves soon', async () => {
    const world = new CertificateWorld();
    await world.settle();
    world.served = [world.serving];
    world.bundle = [];
    world.key = '';
    world.serving = undefined;
    await world.settle();
    expect(world.refused()).toEqual([]);
    world.served = [world.serving];
    expect(world.refused()).toEqual([]);
    expect(world.now - START).toBe(2_000);
  });

  it('looks at every CA that a configuration trusts', async () => {
    const world = new CertificateWorld();
    await world.settle();
    world.now += 700 * DAY_MS;
    await world.settle();
    const other = await authorityAt(world.now);
    expect(world.bundle).toHaveLength(2);
    world.trusted = [world.bundle, [world.bundle[0] as CertificateFacts, other.certificate]];
    expect(nextStep(world.state())).toEqual({ kind: 'Trust' });
  });

  it.each([
    ['the key of the CA is lost', () => ({ key: '' })],
    ['a configuration is installed again', ({ bundle }: CertificateWorld) => ({ trusted: [[], bundle] })],
    ['there are no configurations', () => ({ trusted: [] })],
    ['the server has another name', () => ({ hosts: ['other.example'] })],
    ['the certificate is lost', () => ({ serving: undefined })],
    ['the clock was put back by a day', ({ now }: CertificateWorld) => ({ now: now - DAY_MS })],
    ['the process was away for a year', ({ now }: CertificateWorld) => ({ now: now + 365 * DAY_MS })],
    ['the process was away for ten years', ({ now }: CertificateWorld) => ({ now: now + 3650 * DAY_MS })],
  ])('settles when %s', async (_what, changeOf) => {
    const world = new CertificateWorld();
    await world.settle();
    Object.assign(world, changeOf(world));
    await world.settle();
    world.served = [world.serving];
    expect(world.refused()).toEqual([]);
    expect(world.serving?.hosts).toEqual(world.hosts);
    expect(isIssuedBy((world.serving as Serving).certificate, world.bundle[0] as CertificateFacts)).toBe(true);
  });
});
