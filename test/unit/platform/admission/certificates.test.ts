import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, describe, expect, it } from 'vitest';
import { type CertificateState, nextStep } from '../../../../src/platform/admission/certificate-plan.ts';
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
/** A certificate of the server is good for 90 days. */
const SERVING_LIFETIME_MS = 90 * DAY_MS;
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

describe('the CA of the webhook server', () => {
  it('is good for two years, begins an hour before it is made, and signs nothing but servers', async () => {
    const { certificate } = await authorityAt(START);
    expect([certificate.notBefore, certificate.notAfter]).toEqual([START - 3_600_000, START + 730 * DAY_MS]);
    await import('reflect-metadata');
    const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509Certificate } = await import(
      '@peculiar/x509'
    );
    const parsed = new X509Certificate(certificate.pem);
    expect(parsed.getExtension(BasicConstraintsExtension)).toMatchObject({ ca: true, pathLength: 0, critical: true });
    expect(parsed.getExtension(KeyUsagesExtension)).toMatchObject({
      usages: KeyUsageFlags.keyCertSign,
      critical: true,
    });
    const serving = new X509Certificate((await servingAt(await authorityAt(START), START)).certificate.pem);
    expect(serving.getExtension(BasicConstraintsExtension)).toMatchObject({ ca: false, critical: true });
    expect(serving.getExtension(KeyUsagesExtension)).toMatchObject({
      usages: KeyUsageFlags.digitalSignature,
      critical: true,
    });
    // Positive, and of full length.
    expect(serving.serialNumber).toMatch(/^[4-7][\da-f]{31}$/);
  });

  it('is replaced 120 days before its end', async () => {
    const authority = await authorityAt(START);
    const renewal = authority.certificate.notAfter - 120 * DAY_MS;
    const stateAt = async (now: number): Promise<CertificateState> => {
      const bundle = [authority.certificate];
      return { now, hosts: HOSTS, bundle, authority, serving: await servingAt(authority, renewal), trusted: [bundle] };
    };
    expect(nextStep(await stateAt(renewal - 1_000))).toEqual({ kind: 'Wait', ms: 1_000 });
    expect(nextStep(await stateAt(renewal))).toEqual({
      kind: 'MakeAuthority',
      formerly: [authority.certificate],
    });
  });

  it('is made beside the three newest that were trusted, newest first', async () => {
    const former = await Promise.all([3, 1, 4, 2, 5].map((day) => authorityAt(START + day * DAY_MS)));
    const certificates = former.map(({ certificate }) => certificate);
    const days = (found: readonly CertificateFacts[]) =>
      found.map(({ notBefore }) => Math.ceil((notBefore - START) / DAY_MS));
    const state = { now: START + 6 * DAY_MS, hosts: HOSTS, authority: undefined, serving: undefined };
    const step = nextStep({
      ...state,
      bundle: certificates.slice(0, 2),
      trusted: [certificates, certificates.slice(2)],
    });
    expect(step.kind === 'MakeAuthority' && days(step.formerly)).toEqual([5, 4, 3]);
  });

  it('that has ended is trusted no longer', async () => {
    const [old, newest] = [await authorityAt(START), await authorityAt(START + 720 * DAY_MS)];
    const bundle = [newest.certificate, old.certificate];
    const serving = await servingAt(newest, START + 720 * DAY_MS);
    const stateAt = (now: number) => ({ now, hosts: HOSTS, bundle, authority: newest, serving, trusted: [bundle] });
    expect(nextStep(stateAt(old.certificate.notAfter - 1)).kind).toBe('Wait');
    expect(nextStep(stateAt(old.certificate.notAfter))).toEqual({ kind: 'Forget', bundle: [newest.certificate] });
  });

  it('that is new signs after 30 s while a former certificate is served, and after 2 s where that has ended', async () => {
    const old = await authorityAt(START);
    const serving = await servingAt(old, START);
    const waitAt = async (now: number) => {
      const newest = await authorityAt(now);
      const bundle = [newest.certificate, old.certificate];
      return nextStep({ now, hosts: HOSTS, bundle, authority: newest, serving, trusted: [bundle] });
    };
    expect(await waitAt(START + SERVING_LIFETIME_MS - 1_000)).toEqual({ kind: 'Wait', ms: 30_000 });
    expect(await waitAt(START + SERVING_LIFETIME_MS)).toEqual({ kind: 'Wait', ms: 2_000 });
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
