import { describe, expect, it } from 'vitest';
import { fieldOf, surplusOf } from '../../../../src/platform/catalog/compose/surplus.ts';

const port = (containerPort: number, more: object = {}) => ({ name: `p${containerPort}`, containerPort, ...more });

function workload(container: object, metadata: object = {}, spec: object = {}) {
  const containers = [
    { name: 'sidecar', args: ['--own'], ports: [port(1)] },
    { name: 'cart', ...container },
  ];
  return { metadata: { name: 'shop-cart' }, spec: { template: { metadata, spec: { containers, ...spec } } } } as never;
}

function composed(container: object, metadata: object = {}, spec: object = {}) {
  const containers = [{ name: 'cart', ...container }];
  return { metadata: { name: 'shop-cart' }, spec: { template: { metadata, spec: { containers, ...spec } } } } as never;
}

const service = (...ports: object[]) => ({ metadata: { name: 'shop-cart' }, spec: { ports } }) as never;

const CART = '/spec/template/spec/containers/1';
const VERSION = 'module.koupleless.io/version';

describe('the surplus of a workload', () => {
  it('is nothing where it has what was composed, and what others decide', () => {
    const container = { args: ['a'], ports: [port(80)] };
    const more = { ...container, env: [{ name: 'OTHER' }], resources: {} };
    const live = workload(more, { labels: { team: 'a' }, annotations: { restartedAt: 'now' } }, { volumes: [] });
    expect(surplusOf(composed(container), live)).toEqual([]);
  });

  it('is what only the Module decides, and does not have', () => {
    const metadata = { labels: { [VERSION]: '1' }, annotations: { 'platform.koupleless.io/sha256': 'a' } };
    const live = workload({ args: ['a'], ports: [port(80)] }, metadata, { readinessGates: [] });
    expect(surplusOf(composed({}), live)).toEqual([
      '/spec/template/metadata/labels/module.koupleless.io~1version',
      '/spec/template/metadata/annotations/platform.koupleless.io~1sha256',
      '/spec/template/spec/readinessGates',
      `${CART}/args`,
      `${CART}/ports`,
    ]);
  });

  it('are ports by number and protocol, the last one first, so that each can be removed', () => {
    const live = workload({ ports: [port(1), port(80, { protocol: 'UDP' }), port(80, { protocol: 'TCP' }), port(2)] });
    expect(surplusOf(composed({ ports: [port(80)] }), live)).toEqual([
      `${CART}/ports/3`,
      `${CART}/ports/1`,
      `${CART}/ports/0`,
    ]);
  });

  it('is nothing of an object that has no such container', () => {
    expect(surplusOf(composed({}), { metadata: { name: 'a' }, spec: {} } as never)).toEqual([]);
  });
});

it('the surplus of a Service are ports', () => {
  expect(surplusOf(service({ port: 80 }), service({ port: 80, protocol: 'TCP' }, { port: 81 }))).toEqual([
    '/spec/ports/1',
  ]);
});

it.each([
  [`${CART}/ports/0`, 'spec.template.spec.containers[1].ports[0]'],
  ['/spec/template/metadata/labels/module.koupleless.io~1version', `spec.template.metadata.labels.${VERSION}`],
])('%s is the field %s', (pointer, field) => {
  expect(fieldOf(pointer)).toBe(field);
});
