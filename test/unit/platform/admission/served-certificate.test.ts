import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../../src/logger.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { authorityOf, certificatesOf } from '../../../../src/platform/admission/certificates.ts';
import { type IssuedPair, issueServing, makeAuthority } from '../../../../src/platform/admission/issue-certificates.ts';
import { ServedCertificate } from '../../../../src/platform/admission/served-certificate.ts';
import { type CachedSecret, cachedSecrets } from '../../../../src/platform/admission/webhook-objects.ts';
import type { TlsPair } from '../../../../src/server/tls-source.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeInformer } from '../../../support/fake-informer.ts';

const DAY_MS = 86_400_000;

async function issued(now: number): Promise<IssuedPair> {
  const { cert, key } = await makeAuthority(now);
  const authority = authorityOf(certificatesOf(cert)[0], key);
  if (authority === undefined) throw new Error('no authority');
  return issueServing(authority, ['webhook.example'], now);
}

function world() {
  const clock = new FakeClock();
  const metrics = createMetrics();
  const secrets = new FakeInformer<CachedSecret>(clock, (raw) => cachedSecrets('ns').project(raw, {} as never));
  const served = new ServedCertificate({ secrets, clock, metrics, logger: silentLogger });
  const changes: TlsPair[] = [];
  served.onChange((pair) => changes.push(pair));
  let version = 0;
  const object = (pair: Partial<IssuedPair>) => {
    const base64 = (text = '') => Buffer.from(text).toString('base64');
    const metadata = { name: 'module-platform-webhook', namespace: 'ns', uid: 'u', resourceVersion: String(++version) };
    return { metadata, data: { 'tls.crt': base64(pair.cert), 'tls.key': base64(pair.key) } };
  };
  const put = (pair: Partial<IssuedPair>): void => secrets.deliver({ type: 'PUT', object: object(pair) });
  const remove = (): void => secrets.deliver({ type: 'DELETED', object: object({}) });
  const reloads = async () =>
    (await metrics.certificateReloads.get()).values.map(({ labels, value }) => `${labels.result} ${value}`);
  return { clock, metrics, served, changes, put, remove, reloads };
}

describe('the certificate that the webhook server shows', () => {
  it('is none before the Secret has one', async () => {
    const { served, put, reloads } = world();
    put({});
    expect(() => served.current()).toThrow('no certificate yet');
    expect(served.isValid()).toBe(false);
    expect(await reloads()).toEqual(['ok 0', 'error 0']);
  });

  it('is that of the Secret, and the next one as soon as it is there', async () => {
    const { clock, metrics, served, changes, put, reloads } = world();
    const now = clock.wallTime().getTime();
    const [first, second] = [await issued(now), await issued(now + DAY_MS)];
    put(first);
    await served.whenThere();
    expect(served.current()).toEqual(first);
    put(first);
    put(second);
    expect(served.current()).toEqual(second);
    expect(changes).toEqual([first, second]);
    expect(await reloads()).toEqual(['ok 2', 'error 0']);
    expect((await metrics.webhookCertificateEnd.get()).values[0]?.value).toBe((now + 91 * DAY_MS) / 1000);
  });

  it('is taken again when its key is another one', async () => {
    const { clock, put, changes, reloads } = world();
    const now = clock.wallTime().getTime();
    const [first, other] = [await issued(now), await issued(now)];
    put(first);
    put({ cert: first.cert, key: other.key });
    put({ cert: other.cert, key: first.key });
    expect(changes).toEqual([first]);
    expect(await reloads()).toEqual(['ok 1', 'error 2']);
  });

  it('stays when the Secret goes, or is emptied', async () => {
    const { clock, served, put, remove } = world();
    const pair = await issued(clock.wallTime().getTime());
    put(pair);
    put({});
    remove();
    expect([served.current(), served.isValid()]).toEqual([pair, true]);
  });

  it('is valid until the moment at which it ends', async () => {
    const { clock, served, put } = world();
    put(await issued(clock.wallTime().getTime()));
    clock.advance(90 * DAY_MS - 1);
    expect(served.isValid()).toBe(true);
    clock.advance(1);
    expect(served.isValid()).toBe(false);
  });
});
