import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MODULE_CONFIG_CRD } from '../../src/platform/catalog/config/module-config.ts';
import { eventually } from '../support/eventually.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const CRD = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${MODULE_CONFIG_CRD.metadata.name}`;
const COLLECTION = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduleconfigs';
const STRICT = 'fieldValidation=Strict';

let world: World;

type Changes = Readonly<Record<string, unknown>>;

function manifestOf(changes: Changes = {}, name = 'shop') {
  const target = { kind: 'Module', app: 'shop', name: 'cart' };
  const spec = { target, file: 'application.yaml', format: 'yaml', content: 'a: 1', ...changes };
  return {
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleConfig',
    metadata: { name, namespace: 'default' },
    spec,
  };
}

async function answerOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'accepted',
    (error: Error) => error.message,
  );
}

const tried = (changes: Changes) =>
  answerOf(world.admin.post(`${COLLECTION}?dryRun=All&${STRICT}`, manifestOf(changes)));

beforeAll(async () => {
  world = await startWorld();
  await world.admin.applyObject(
    CRD,
    { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', ...MODULE_CONFIG_CRD } as never,
    'module-controller',
  );
  await eventually(async () => expect(await tried({})).toBe('accepted'));
});

afterAll(async () => {
  await world?.admin.delete(CRD).catch(() => {});
  await world?.stop();
});

describe('the API server accepts a ModuleConfig', () => {
  it.each([
    ['of a whole application', { target: { kind: 'Module', app: 'Shop' } }],
    ['with an empty name', { target: { kind: 'Module', app: 'Shop', name: '' } }],
    ['that is a template', { target: { kind: 'Template' }, parent: 'common.base', content: '' }],
    ['with all fields', { activation: 'Manual', activeVersion: '' }],
    ['with a version', { activeVersion: '20261128235959-0123abcd' }],
    ['of 900,000 bytes', { content: 'é'.repeat(450_000) }],
  ] as const)('%s', async (_what, changes) => expect(await tried(changes)).toBe('accepted'));
});

describe('the API server refuses a ModuleConfig', () => {
  it.each([
    ['without an application', { target: { kind: 'Module', name: 'cart' } }, 'target.app is needed'],
    [
      'that is a template with a name',
      { target: { kind: 'Template', name: 'x' } },
      'have no effect for kind: Template',
    ],
    ['of another kind', { target: { kind: 'Pod', app: 'shop' } }, 'Unsupported value'],
    ['of an application with a dash', { target: { kind: 'Module', app: 'my-shop' } }, 'should match'],
    ['with a path as file', { file: '../x' }, 'should match'],
    ['with another format', { format: 'toml' }, 'Unsupported value'],
    ['that is its own parent', { parent: 'shop' }, 'spec.parent must be another ModuleConfig'],
    ['with a wrong id', { activeVersion: 'v1' }, 'should match'],
    ['of 900,001 bytes', { content: `x${'é'.repeat(450_000)}` }, 'at most 900000 bytes'],
    ['with a misspelled field', { contents: '' }, 'unknown field'],
  ] as const)('%s', async (_what, changes, message) => expect(await tried(changes)).toContain(message));
});

it('target, file and format cannot be changed, the rest can', async () => {
  await world.admin.post(`${COLLECTION}?${STRICT}`, manifestOf());
  const patch = (spec: object) => answerOf(world.admin.mergePatch(`${COLLECTION}/shop`, { spec }));
  expect(await patch({ target: { name: 'other' } })).toContain('target cannot be changed');
  expect(await patch({ file: 'other.yaml' })).toContain('file cannot be changed');
  expect(await patch({ format: 'json' })).toContain('format cannot be changed');
  expect(await patch({ content: 'a: 2', parent: 'p', activation: 'Manual' })).toBe('accepted');
});
