import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import * as labels from '../../src/labels.ts';
import { generatedManifests } from '../manifests/manifests.ts';

const DIRECTORY = new URL('../../deploy/platform/', import.meta.url);
const textOf = (name: string): string => readFileSync(new URL(name, DIRECTORY), 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: manifests of many kinds
const documentsOf = (name: string): any[] => parseAllDocuments(textOf(name)).map((document) => document.toJS());

describe('the manifests of the platform', () => {
  it.each(Object.entries(generatedManifests()))('%s is as `npm run manifests` makes it', (path, text) => {
    expect(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')).toBe(text);
  });

  it('are all in the kustomization', () => {
    const { resources } = parse(textOf('kustomization.yaml'));
    const files = readdirSync(DIRECTORY).filter((name) => name !== 'kustomization.yaml');
    expect([...resources].sort()).toEqual(files.sort());
  });

  it('have policies about the same objects', () => {
    const policies = documentsOf('policies.yaml').filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    expect(policies.map(({ metadata }) => metadata.name)).toEqual(['module-pods', 'module-tenancy', 'module-export']);
    const [first, second] = policies.map(({ spec }) => ({
      constraints: spec.matchConstraints,
      conditions: spec.matchConditions,
      failurePolicy: spec.failurePolicy,
    }));
    expect(first).toEqual(second);
  });

  it('take the same Services for exported in the webhook and in the policy', () => {
    const policy = documentsOf('policies.yaml').find(
      ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === 'module-export',
    );
    const webhooks = documentsOf('webhook.yaml').flatMap((object) => object.webhooks ?? []);
    const webhook = webhooks.find(({ name }) => name === 'services.platform.koupleless.io');
    expect(webhook.matchConditions[0].name).toBe('is-exported');
    expect(webhook.matchConditions).toEqual(policy.spec.matchConditions);
  });

  it('have the keys of the sources', () => {
    const known = Object.values(labels).flatMap((value) =>
      typeof value === 'object' ? Object.values(value) : [value],
    );
    const keys = new Set([
      ...(textOf('policies.yaml').match(/[\w.-]*koupleless\.io\/[\w-]+/g) ?? []),
      ...(textOf('webhook.yaml').match(/[\w.-]*koupleless\.io\/[\w-]+/g) ?? []),
    ]);
    expect(keys.size).toBeGreaterThan(5);
    expect([...keys].filter((key) => !known.includes(key) && key !== 'platform.koupleless.io/v1alpha1')).toEqual([]);
  });

  it('stop nobody else when the webhook is away', () => {
    const webhooks = documentsOf('webhook.yaml').flatMap((object) => object.webhooks ?? []);
    expect(webhooks.length).toBeGreaterThan(2);
    for (const {
      name,
      failurePolicy,
      objectSelector,
      matchConditions,
      rules,
      sideEffects,
      timeoutSeconds,
    } of webhooks) {
      expect([name, sideEffects, timeoutSeconds]).toEqual([name, 'None', 5]);
      const isOurs = rules.every(
        ({ apiGroups }: { apiGroups: string[] }) => apiGroups.join() === labels.PLATFORM_GROUP,
      );
      expect([name, failurePolicy]).toEqual([name, isOurs ? 'Fail' : 'Ignore']);
      // Others never come to it: an annotation cannot be selected by.
      const isExport = /'BCSGROUP' in .* \|\| .*export-groups/s.test(matchConditions?.[0].expression);
      if (!isOurs && !isExport)
        expect([name, Object.keys(objectSelector.matchLabels)]).toEqual([name, [expect.any(String)]]);
    }
  });
});
