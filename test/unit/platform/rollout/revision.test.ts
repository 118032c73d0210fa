import { describe, expect, it } from 'vitest';
import type { ModuleTemplate } from '../../../../src/platform/rollout/module-deployment.ts';
import { hashOf, isSameTemplate, projectRevision } from '../../../../src/platform/rollout/revision.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';

// biome-ignore lint/suspicious/noExplicitAny: what users write
function template(change: (template: any) => void = () => {}): ModuleTemplate {
  const copy = structuredClone(moduleDeployment().spec.template) as unknown as ModuleTemplate;
  change(copy);
  return copy;
}

describe('two templates are the same', () => {
  it.each([
    ['an empty list', ({ spec }) => Object.assign(spec.containers[0], { args: [] })],
    ['a default', ({ spec }) => Object.assign(spec, { restartPolicy: 'Always' })],
    ['empty annotations', ({ metadata }) => Object.assign(metadata, { annotations: {} })],
    ['metadata that no Pod gets', ({ metadata }) => Object.assign(metadata, { name: 'x', creationTimestamp: null })],
    ['a field that an older schema let through', ({ spec }) => Object.assign(spec, { tolerationss: [] })],
    [
      'a label that each Pod has of its own',
      ({ metadata }) => Object.assign(metadata.labels, { 'controller-revision-hash': 'mine' }),
    ],
    [
      'an annotation that each Pod has of its own',
      ({ metadata }) => Object.assign(metadata, { annotations: { 'platform.koupleless.io/replaces': 'uid' } }),
    ],
    [
      'the order of keys',
      (one) => Object.assign(one, { spec: Object.fromEntries(Object.entries(one.spec).reverse()) }),
    ],
    // biome-ignore lint/suspicious/noExplicitAny: what users write
  ] as readonly (readonly [string, (template: any) => void])[])('that differ in %s', (_what, change) => {
    expect(isSameTemplate(template(change), template())).toBe(true);
    expect(isSameTemplate(template(), template(change))).toBe(true);
  });
});

describe('two templates are not the same', () => {
  it.each([
    ['a label', ({ metadata }) => Object.assign(metadata.labels, { tier: 'web' })],
    ['an annotation', ({ metadata }) => Object.assign(metadata, { annotations: { a: 'b' } })],
    ['an argument', ({ spec }) => Object.assign(spec.containers[0], { args: ['--x'] })],
    ['a variable', ({ spec }) => spec.containers[0].env.push({ name: 'A', value: '' })],
    ['the order of variables', ({ spec }) => spec.containers[0].env.unshift({ name: 'A' })],
    // biome-ignore lint/suspicious/noExplicitAny: what users write
  ] as readonly (readonly [string, (template: any) => void])[])('that differ in %s', (_what, change) => {
    expect(isSameTemplate(template(change), template())).toBe(false);
  });

  it('where there is none', () => {
    expect(isSameTemplate(undefined, template())).toBe(false);
    expect(isSameTemplate(undefined, undefined)).toBe(false);
  });
});

it('the hash of a template is of what its author wrote, as in every version of this program', () => {
  const written = template(({ spec }) => Object.assign(spec.containers[0], { args: [] }));
  expect([hashOf(template()), hashOf(written)]).toEqual(['kxbdrln255', 'nwdhqjtq5q']);
});

it('a revision is read without fields that are null', () => {
  const data = { spec: { template: template(({ spec }) => Object.assign(spec, { tolerations: null })) } };
  const { template: read } = projectRevision({ metadata: { name: 'r' }, data, revision: 1 } as never);
  expect(read?.spec).not.toHaveProperty('tolerations');
});
