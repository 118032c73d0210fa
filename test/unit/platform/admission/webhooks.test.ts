import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { PODS, type ResourceKind } from '../../../../src/kube/resource.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { POD_WEBHOOKS, registerPodWebhooks } from '../../../../src/platform/admission/pod-webhooks.ts';
import { webhookApp } from '../../../../src/platform/admission/webhook-app.ts';
import {
  type Verdict,
  type WebhookHandler,
  type WebhookPath,
  type WebhookRule,
  Webhooks,
} from '../../../../src/reconcile/webhooks.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { metricOf } from '../../../support/metric-text.ts';
import { recordingLogger } from '../../tunnels/mqtt/mqtt-world.ts';

const COMPONENT = 'virtual-kubelet.koupleless.io/component';
const BASE_NAME = 'platform.koupleless.io/base-name';

function review(plural: string, operation: string, object: unknown, oldObject?: unknown) {
  const resource = { group: plural === 'pods' ? '' : 'apps', version: 'v1', resource: plural };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', operation, resource, namespace: 'default', object, oldObject },
  };
}

describe('the webhook server', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  });

  async function serve(webhooks: Webhooks) {
    const [metrics, clock] = [createMetrics(), new FakeClock()];
    const { lines, logger } = recordingLogger();
    const server = createServer(webhookApp({ webhooks, clock, logger, metrics }));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const post = (path: string, body: string) => fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body });
    const count = async (label: string) =>
      metricOf(await metrics.registry.metrics(), 'module_controller_admission_reviews_total', (own) =>
        own.includes(label),
      );
    return { post, count, port, clock, lines };
  }

  const pod = review('pods', 'CREATE', { metadata: { name: 'p' }, spec: { containers: [] } });

  it('answers what a controller has registered for, and denies the rest', async () => {
    const webhooks = new Webhooks();
    on(webhooks, 'validate', PODS, () => ({ isAllowed: false, message: 'not this one' }));
    const { post, count } = await serve(webhooks);
    const answerOf = async (path: string, body: unknown) => (await post(path, JSON.stringify(body))).json();
    expect(await answerOf('/validate', pod)).toMatchObject({
      response: { uid: 'u', allowed: false, status: { message: 'not this one' } },
    });
    for (const [path, body] of [
      ['/mutate', pod],
      ['/validate', review('pods', 'UPDATE', pod.request.object)],
      ['/validate', review('deployments', 'CREATE', pod.request.object)],
    ] as const) {
      expect(await answerOf(path, body)).toMatchObject({
        response: { allowed: false, status: { message: /^unsupported/ } },
      });
    }
    expect([await count('result="denied"'), await count('result="unsupported"')]).toEqual([1, 3]);
  });

  it('allows what a controller that is off would judge, with a warning, and loads nothing for others', async () => {
    const asked: string[] = [];
    const webhooks = new Webhooks(async ({ path, operation, apiVersion, plural }) => {
      asked.push(`${path} ${operation} ${apiVersion} ${plural}`);
      return path === 'validate' && plural === 'pods';
    });
    on(webhooks, 'mutate', PODS, () => ({ isAllowed: true }));
    const { post, count } = await serve(webhooks);
    const answerOf = async (path: string, body: unknown) => (await post(path, JSON.stringify(body))).json();
    expect(await answerOf('/mutate', pod)).toMatchObject({ response: { allowed: true } });
    expect(asked).toEqual([]);
    const { response } = (await answerOf('/validate', pod)) as { response: { allowed: boolean; warnings: string[] } };
    expect(response.allowed).toBe(true);
    expect(response.warnings).toEqual([expect.stringContaining('CONTROLLERS of module-platform')]);
    expect(await answerOf('/validate', review('nodes', 'CREATE', pod.request.object))).toMatchObject({
      response: { allowed: false },
    });
    expect(asked).toEqual(['validate CREATE v1 pods', 'validate CREATE apps/v1 nodes']);
    expect([await count('result="off"'), await count('result="unsupported"')]).toEqual([1, 1]);
  });

  it('asks the API server to come again while the caches of a controller are not whole', async () => {
    const webhooks = new Webhooks();
    let isReady = false;
    on(
      webhooks,
      'validate',
      PODS,
      () => ({ isAllowed: true }),
      () => isReady,
    );
    const { post, count } = await serve(webhooks);
    const early = await post('/validate', JSON.stringify(pod));
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '1']);
    isReady = true;
    expect((await post('/validate', JSON.stringify(pod))).status).toBe(200);
    expect([await count('result="busy"'), await count('result="allowed"')]).toEqual([1, 1]);
  });

  it('answers 400 to what is no AdmissionReview, and 413 to what is too large', async () => {
    const { post, count } = await serve(new Webhooks());
    expect((await post('/mutate', '{"a": ')).status).toBe(400);
    expect((await post('/mutate', '')).status).toBe(400);
    const answer = await post('/mutate', '{}');
    expect([answer.status, await answer.text()]).toEqual([
      400,
      'apiVersion and kind must be admission.k8s.io/v1 AdmissionReview\n',
    ]);
    expect((await post('/mutate', JSON.stringify({ a: 'x'.repeat(7 * 1024 * 1024) }))).status).toBe(413);
    expect((await post('/other', '{}')).status).toBe(404);
    expect(await count('result="invalid"')).toBe(4);
  });

  it('leaves to the API server what it cannot complete, and fails where it cannot judge', async () => {
    const webhooks = new Webhooks();
    const fail = (): Verdict => {
      throw new Error('a fault');
    };
    for (const path of ['mutate', 'validate'] as const) on(webhooks, path, PODS, fail);
    const { post, count } = await serve(webhooks);
    const mutated = await post('/mutate', JSON.stringify(pod));
    expect(await mutated.json()).toMatchObject({ response: { allowed: true } });
    expect((await post('/validate', JSON.stringify(pod))).status).toBe(500);
    expect(await count('result="error"')).toBe(2);
  });

  it('reads no body that is compressed: it may have any size', async () => {
    const { port } = await serve(new Webhooks());
    const headers = { 'content-encoding': 'gzip' };
    const answer = await fetch(`http://127.0.0.1:${port}/mutate`, { method: 'POST', headers, body: gzipSync('{}') });
    expect(answer.status).toBe(415);
  });

  it('asks a source whose bodies have more than 16 MiB to come again, and serves others', async () => {
    const webhooks = new Webhooks();
    on(webhooks, 'validate', PODS, () => ({ isAllowed: true }));
    const { port, count } = await serve(webhooks);
    // Of the second one the length is not known: it may have 7 MiB too.
    const sockets = [
      await unfinished(port, `content-length: ${7 * 1024 * 1024}`),
      await unfinished(port, 'transfer-encoding: chunked'),
    ];
    const ask = (localAddress: string, length: number) => {
      const text = JSON.stringify({ ...pod, rest: 'x'.repeat(length) });
      return validated(port, localAddress, text);
    };
    expect(await ask('127.0.0.1', 1024 * 1024)).toEqual({ status: 200 });
    expect(await ask('127.0.0.1', 3 * 1024 * 1024)).toEqual({ status: 503, retryAfter: '1' });
    expect(await ask('127.0.0.2', 3 * 1024 * 1024)).toEqual({ status: 200 });
    expect([await count('result="busy"'), await count('result="allowed"')]).toEqual([1, 2]);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => ask('127.0.0.1', 3 * 1024 * 1024)).toEqual({ status: 200 });
  });

  it('logs few of many requests that it denies, and no long text', async () => {
    const webhooks = new Webhooks();
    on(webhooks, 'validate', PODS, () => ({ isAllowed: false, message: 'm'.repeat(10_000) }));
    const { post, lines, clock } = await serve(webhooks);
    const named = JSON.stringify(
      review('pods', 'CREATE', { metadata: { name: 'n'.repeat(10_000) }, spec: { containers: [] } }),
    );
    for (let times = 0; times < 110; times++) await post('/validate', named);
    expect(lines.filter(({ msg }) => msg === 'request denied')).toHaveLength(100);
    clock.advance(1_000);
    await post('/validate', named);
    expect(lines).toHaveLength(101);
    expect(lines.at(-1)).toMatchObject({ suppressed: 10 });
    expect(Math.max(...lines.map((line) => JSON.stringify(line).length))).toBeLessThan(3_000);
  });
});

/** A handler for creations of a kind. */
function on(
  webhooks: Webhooks,
  path: WebhookPath,
  kind: ResourceKind,
  handler: WebhookHandler,
  isReady = (): boolean => true,
): void {
  const rule: WebhookRule = { name: 'x', path, kind, operations: ['CREATE'], failurePolicy: 'Fail', use: '' };
  webhooks.registryOf('test', [rule], isReady).register(rule, handler);
}

/** A request whose body does not come; it is being read when this resolves. */
async function unfinished(port: number, header: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`POST /validate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n${header}\r\n\r\n`);
  await once(socket, 'data');
  return socket;
}

function validated(
  port: number,
  localAddress: string,
  body: string,
): Promise<{ status?: number; retryAfter?: string }> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', localAddress, path: '/validate', method: 'POST', agent: false as const };
    const asked = request(options, (response) => {
      const { statusCode: status, headers } = response.resume();
      const { 'retry-after': retryAfter } = headers;
      resolve({ ...(status && { status }), ...(retryAfter && { retryAfter }) });
    });
    asked.once('error', reject);
    asked.end(body);
  });
}

describe('Pods of modules', () => {
  const webhooks = new Webhooks();
  registerPodWebhooks(
    webhooks.registryOf('admission', POD_WEBHOOKS, () => true),
    'dev',
  );

  function mutated(plural: string, object: unknown, oldObject?: unknown) {
    const [operation, apiVersion] = [oldObject ? 'UPDATE' : 'CREATE', plural === 'pods' ? 'v1' : 'apps/v1'];
    const handler = webhooks.find({ path: 'mutate', operation, apiVersion, plural });
    if (handler === 'NotReady') throw new Error('it has no cache to wait for');
    const verdict = handler?.({ operation, namespace: 'default', object, oldObject } as never);
    return (verdict?.isAllowed && verdict.object) as never as {
      spec: { tolerations?: unknown[]; template: { spec: { tolerations?: unknown[]; affinity?: unknown } } };
    };
  }

  function daemonSet(annotations?: Record<string, string>, spec: object = {}) {
    const containers = [{ name: 'shop', image: 'https://jars.example.com/shop-1.jar' }];
    const metadata = { labels: { [COMPONENT]: 'module' }, ...(annotations && { annotations }) };
    return { metadata: { name: 'd' }, spec: { template: { metadata, spec: { containers, ...spec } } } };
  }

  const onBase = (name: string) => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'vnode.koupleless.io/name', operator: 'In', values: [name] }] },
        ],
      },
    },
  });

  it('are completed, and others are left alone', () => {
    const spec = { containers: [{ name: 'shop', image: 'x' }] };
    expect(mutated('pods', { metadata: { labels: { [COMPONENT]: 'module' } }, spec }).spec.tolerations).toHaveLength(2);
    expect(mutated('pods', { metadata: {}, spec })).toBeUndefined();
    expect(mutated('daemonsets', { metadata: {}, spec: { template: { spec } } })).toBeUndefined();
  });

  it('have templates that say where they may run, and no version', () => {
    for (const plural of ['daemonsets', 'deployments']) {
      const { template } = mutated(plural, daemonSet({ [BASE_NAME]: 'a' })).spec;
      expect(template.spec).toMatchObject({ affinity: onBase('a'), containers: [{ name: 'shop' }] });
      expect(template.spec.tolerations).toHaveLength(2);
      expect(JSON.stringify(template)).not.toContain('BIZ_VERSION');
    }
  });

  it('stay as they are while they are deleted: what lets them go must change nothing that is judged', () => {
    const before = daemonSet();
    const { metadata } = before;
    const deleted = { ...before, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [] } };
    expect(mutated('daemonsets', deleted, before)).toBeUndefined();
  });

  it('follow an annotation that changes, and one that goes', () => {
    const before = mutated('daemonsets', daemonSet({ [BASE_NAME]: 'a' }));
    const { affinity } = before.spec.template.spec;
    const affinityWith = (annotations?: Record<string, string>) =>
      mutated('daemonsets', daemonSet(annotations, { affinity }), before).spec.template.spec.affinity;
    expect(affinityWith({ [BASE_NAME]: 'b' })).toEqual(onBase('b'));
    expect(affinityWith({ [BASE_NAME]: 'a' })).toEqual(onBase('a'));
    expect(affinityWith()).toEqual({ nodeAffinity: {} });
  });

  it('stay as they are, in the order that they have, while their annotations do', () => {
    const zone = { key: 'zone', operator: 'In', values: ['z'] };
    const [term] = onBase('a').nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [...(term?.matchExpressions ?? []), zone] }],
        },
      },
    };
    const object = daemonSet({ [BASE_NAME]: 'a' }, { affinity });
    expect(mutated('daemonsets', object, object).spec.template.spec.affinity).toEqual(affinity);
  });

  it('keep the affinity that their author wrote beside an annotation that changes', () => {
    const own = onBase('mine');
    const before = daemonSet({ [BASE_NAME]: 'a' }, { affinity: own });
    const after = mutated('daemonsets', daemonSet({ [BASE_NAME]: 'b' }, { affinity: own }), before);
    expect(after.spec.template.spec.affinity).toEqual(own);
  });
});
