import { describe, expect, it } from 'vitest';
import type { ResourceKind } from '../../../../src/kube/resource.ts';
import { silentLogger } from '../../../../src/logger.ts';
import { CertificateController } from '../../../../src/platform/admission/certificate-controller.ts';
import { certificatesOf, servingOf } from '../../../../src/platform/admission/certificates.ts';
import {
  type CachedConfiguration,
  type CachedSecret,
  type ConfigurationObject,
  cachedConfigurations,
  cachedSecrets,
  MUTATING_CONFIGURATIONS,
  type SecretObject,
  VALIDATING_CONFIGURATIONS,
} from '../../../../src/platform/admission/webhook-objects.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeInformer } from '../../../support/fake-informer.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOSTS = ['module-platform-webhook.koupleless-system.svc'];
const SECRET = 'module-platform-webhook';

/** The Secret and both webhook configurations as an API server has them, and a controller that keeps them. */
class World {
  readonly clock = new FakeClock();
  readonly secrets = new FakeInformer<CachedSecret>(this.clock, (raw) =>
    cachedSecrets('koupleless-system').project(raw, {} as never),
  );
  readonly writes: string[] = [];
  isLeading = true;
  secret: SecretObject | undefined;
  readonly configurations: { object: ConfigurationObject; informer: FakeInformer<CachedConfiguration> }[] = [];
  readonly controller: CertificateController;
  #version = 1;

  constructor() {
    const stores = [MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS].map((kind) => this.#storeOf(kind));
    this.controller = new CertificateController({
      namespace: 'koupleless-system',
      hosts: HOSTS,
      secrets: this.secrets,
      secretClient: {
        mergePatch: async (_ref, patch, options) => {
          const { data } = patch as { data: Record<string, string> };
          this.#write(`secret ${Object.keys(data).sort()}`, patch, this.secret, options?.permit);
          this.putSecret({ ...this.secret?.data, ...data });
          return this.secret as SecretObject;
        },
      },
      configurations: stores,
      permit: () => this.isLeading,
      clock: this.clock,
      logger: silentLogger,
    });
  }

  putSecret(data: Record<string, string> = {}): void {
    this.secret = { metadata: this.#meta(SECRET, 'koupleless-system'), data };
    this.secrets.deliver({ type: 'PUT', object: this.secret });
  }

  textOf(key: string): string {
    return Buffer.from(this.secret?.data?.[key] ?? '', 'base64').toString();
  }

  trusted(): string[] {
    const bundles = this.configurations.flatMap(({ object }) => object.webhooks ?? []);
    return bundles.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString());
  }

  /** Until there is nothing to do for a while. Returns how long that is. */
  async settle(): Promise<number | undefined> {
    for (let steps = 0; steps < 10; steps++) {
      const { requeueAfterMs } = (await this.controller.reconcile()) ?? {};
      if (requeueAfterMs !== undefined && requeueAfterMs > 60_000) return requeueAfterMs;
      this.clock.advance(requeueAfterMs ?? 0);
    }
    throw new Error(`does not settle: ${this.writes.join()}`);
  }

  #storeOf(kind: ResourceKind) {
    const informer = new FakeInformer<CachedConfiguration>(this.clock, (raw) =>
      cachedConfigurations(kind).project(raw, {} as never),
    );
    const webhooks = ['a', 'b'].map((name) => ({ name, clientConfig: {} }));
    const own = { object: { metadata: this.#meta('module-platform'), webhooks } as ConfigurationObject, informer };
    informer.deliver({ type: 'PUT', object: own.object });
    this.configurations.push(own);
    return {
      informer,
      client: {
        strategicPatch: async (_ref: unknown, patch: object, options?: { permit?: () => boolean }) => {
          this.#write(kind.plural, patch, own.object, options?.permit);
          const { webhooks: changed = [] } = patch as ConfigurationObject;
          own.object = { metadata: this.#meta('module-platform'), webhooks: changed };
          informer.deliver({ type: 'PUT', object: own.object });
          return own.object;
        },
      } as never,
    };
  }

  #meta(name: string, namespace?: string) {
    const resourceVersion = String(this.#version++);
    return { name, uid: `uid-${name}`, resourceVersion, ...(namespace !== undefined && { namespace }) };
  }

  /** Whoever writes has to lead, and to have seen the newest version. */
  #write(
    what: string,
    patch: object,
    stored: SecretObject | ConfigurationObject | undefined,
    permit: (() => boolean) | undefined,
  ): void {
    const { metadata } = patch as { metadata: { resourceVersion: string } };
    if (permit?.() !== true) throw new Error('not permitted');
    if (metadata.resourceVersion !== stored?.metadata.resourceVersion) throw new Error('conflict');
    this.writes.push(what);
  }
}

describe('the certificates of the webhook server', () => {
  it('are made from nothing: a CA, trust in it, and a certificate that it signs', async () => {
    const world = new World();
    world.putSecret();
    expect(await world.settle()).toBe(12 * HOUR_MS);
    expect(world.writes).toEqual([
      'secret ca.crt,ca.key',
      'mutatingwebhookconfigurations',
      'validatingwebhookconfigurations',
      'secret tls.crt,tls.key',
    ]);
    expect(world.trusted()).toEqual(new Array(4).fill(world.textOf('ca.crt')));
    expect(servingOf(world.textOf('tls.crt'), world.textOf('tls.key'))?.hosts).toEqual(HOSTS);
    await world.settle();
    expect(world.writes).toHaveLength(4);
  });

  it('are looked at each 12 hours, and just when the next one is due', async () => {
    const world = new World();
    world.putSecret();
    await world.settle();
    world.clock.advance(60 * DAY_MS - 12 * HOUR_MS - 1);
    expect(await world.controller.reconcile()).toEqual({ requeueAfterMs: 12 * HOUR_MS });
    world.clock.advance(6 * HOUR_MS + 1);
    expect(await world.controller.reconcile()).toEqual({ requeueAfterMs: 6 * HOUR_MS });
    const before = world.textOf('tls.crt');
    world.clock.advance(6 * HOUR_MS);
    await world.settle();
    expect(world.writes.slice(4)).toEqual(['secret tls.crt,tls.key']);
    expect(world.textOf('tls.crt')).not.toBe(before);
  });

  it('are of a new CA in time, and the former one is forgotten when all that it has signed has ended', async () => {
    const world = new World();
    world.putSecret();
    await world.settle();
    const former = world.textOf('ca.crt');
    world.clock.advance(611 * DAY_MS);
    await world.settle();
    expect(certificatesOf(world.textOf('ca.crt'))).toHaveLength(2);
    expect(world.textOf('ca.crt')).toContain(former);
    expect(world.trusted()).toEqual(new Array(4).fill(world.textOf('ca.crt')));
    world.clock.advance(90 * DAY_MS);
    await world.settle();
    expect(certificatesOf(world.textOf('ca.crt'))).toHaveLength(1);
    expect(world.textOf('ca.crt')).not.toContain(former);
    expect(world.trusted()).toEqual(new Array(4).fill(world.textOf('ca.crt')));
  });

  it('need the Secret that the manifests make', async () => {
    await expect(new World().controller.reconcile()).rejects.toMatchObject({ code: 'Webhook.SecretMissing' });
  });

  it('are written by the leader only', async () => {
    const world = new World();
    world.putSecret();
    world.isLeading = false;
    await expect(world.controller.reconcile()).rejects.toThrow('not permitted');
    expect(world.writes).toEqual([]);
  });
});
