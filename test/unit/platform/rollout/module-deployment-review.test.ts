import { describe, expect, it } from 'vitest';
import { MODULE_LABEL } from '../../../../src/labels.ts';
import {
  MODULE_DEPLOYMENT_CRD,
  MODULE_DEPLOYMENT_SCHEMAS,
  type ModuleDeploymentObject,
  projectModuleDeployment,
} from '../../../../src/platform/rollout/module-deployment.ts';
import { reviewModuleDeployment } from '../../../../src/platform/rollout/module-deployment-review.ts';
import { projectRevision } from '../../../../src/platform/rollout/revision.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';

function deployment(change: (object: ReturnType<typeof moduleDeployment>) => void = () => {}) {
  const object = moduleDeployment();
  change(object);
  return object as unknown as ModuleDeploymentObject;
}

function revision(number: number, { spec }: ModuleDeploymentObject) {
  return projectRevision({
    metadata: { name: `r-${number}`, labels: { 'controller-revision-hash': `hash-${number}` } },
    data: { spec: { template: spec.template } },
    revision: number,
  } as never);
}

function review(
  object: ModuleDeploymentObject,
  {
    oldObject,
    history = [],
    others = [],
  }: {
    oldObject?: ModuleDeploymentObject;
    history?: ReturnType<typeof revision>[];
    others?: ModuleDeploymentObject[];
  } = {},
) {
  const deployments = others.map(projectModuleDeployment);
  const request = { operation: oldObject ? 'UPDATE' : 'CREATE', namespace: 'default', object, oldObject } as const;
  return reviewModuleDeployment(request, { historyOf: () => history, deploymentsOf: () => deployments });
}

describe('a ModuleDeployment', () => {
  it('is allowed, without a warning', () => {
    expect(review(deployment())).toEqual({ isAllowed: true, warnings: [] });
  });

  it('needs a version for each module, as its Pods will have it', () => {
    const withoutEnv = (image: string) =>
      deployment(({ spec }) => {
        for (const container of spec.template.spec.containers) Object.assign(container, { env: [], image });
      });
    expect(review(withoutEnv('https://jars.example.com/shop-1.0.0-ark-biz.jar')).isAllowed).toBe(true);
    expect(review(withoutEnv('https://jars.example.com/latest.jar'))).toEqual({
      isAllowed: false,
      message: expect.stringContaining('spec.template.spec.containers[shop].env: BIZ_VERSION is missing'),
    });
  });

  it('may have the version in a label of the Pod while that has one module, which none of several can', () => {
    const labelled = (names: readonly string[]) =>
      deployment(({ spec }) => {
        Object.assign(spec.template.metadata.labels, { [MODULE_LABEL.version]: '1.0.0' });
        const [container] = spec.template.spec.containers;
        const containers = names.map((name) => ({
          ...container,
          name,
          env: [],
          image: 'https://jars.example.com/latest.jar',
        }));
        Object.assign(spec.template.spec, { containers });
      });
    expect(review(labelled(['shop'])).isAllowed).toBe(true);
    const missing = (name: string) => expect.stringContaining(`containers[${name}].env: BIZ_VERSION is missing`);
    const { message } = review(labelled(['shop', 'till'])) as { message?: string };
    for (const name of ['shop', 'till']) expect(message).toEqual(missing(name));
  });

  it('can be rolled back to a revision that there is', () => {
    const [first, second] = ['1.0.0', '2.0.0'].map(
      (version) => moduleDeployment({ version }) as unknown as ModuleDeploymentObject,
    );
    if (!first || !second) throw new Error('two versions are needed');
    const history = [revision(1, first), revision(2, second)];
    const asked = (number?: number) => ({
      ...second,
      spec: { ...second.spec, rollbackTo: number === undefined ? {} : { revision: number } },
    });
    for (const number of [undefined, 0, 1, 2])
      expect(review(asked(number), { oldObject: second, history }).isAllowed).toBe(true);
    expect(review(asked(7), { oldObject: second, history })).toEqual({
      isAllowed: false,
      message: 'spec.rollbackTo.revision: there is no revision 7, there are 1, 2',
    });
    expect(review(asked(0), { oldObject: second, history: history.slice(1) })).toMatchObject({
      message: 'spec.rollbackTo.revision: there is no earlier revision, there are 2',
    });
    expect(review(asked(1), { history })).toMatchObject({
      message: 'spec.rollbackTo.revision: there is no revision 1',
    });
  });

  it('cannot have a new template together with a rollback, which would replace it', () => {
    const [first, second, third] = ['1.0.0', '2.0.0', '3.0.0'].map(
      (version) => moduleDeployment({ version }) as unknown as ModuleDeploymentObject,
    );
    if (!first || !second || !third) throw new Error('three versions are needed');
    const history = [revision(1, first), revision(2, second)];
    const asked = (object: ModuleDeploymentObject, rollbackTo: object) =>
      review({ ...object, spec: { ...object.spec, rollbackTo } }, { oldObject: second, history });
    for (const [object, rollbackTo] of [
      [third, { revision: 1 }],
      [third, {}],
      [first, {}],
      [first, { revision: 2 }],
    ] as const)
      expect(asked(object, rollbackTo)).toEqual({
        isAllowed: false,
        message: expect.stringContaining('spec.rollbackTo: would replace the new spec.template by that of revision'),
      });
    // As the controller writes it: the template of the revision that the field names.
    expect(asked(first, { revision: 1 }).isAllowed).toBe(true);
    // It may do so from a newer history: a refusal would end the rollback.
    const restored = { ...first, spec: { ...first.spec, rollbackTo: { revision: 1 } } };
    const pending = { ...second, spec: { ...second.spec, rollbackTo: {} } };
    expect(review(restored, { oldObject: pending, history: [] }).isAllowed).toBe(true);
    expect(review(restored, { oldObject: second, history: [] }).isAllowed).toBe(false);
    // A change that makes no difference to Pods is none.
    const same = structuredClone(second);
    Object.assign(same.spec.template.spec, { restartPolicy: 'Always' });
    expect(asked(same, { revision: 1 }).isAllowed).toBe(true);
  });

  it('is refused for what its Pods would be refused for, with the name of the field', () => {
    const refused = (change: (template: { metadata: object; spec: object }) => void) =>
      review(deployment(({ spec }) => change(spec.template)));
    expect(refused(({ spec }) => Object.assign(spec, { tolerations: [{ value: 'x' }] }))).toEqual({
      isAllowed: false,
      message: 'spec.template.spec.tolerations[0].operator: must be Exists where there is no key',
    });
    expect(refused(({ metadata }) => Object.assign(metadata, { annotations: { 'a b': '' } }))).toEqual({
      isAllowed: false,
      message: 'spec.template.metadata.annotations: "a b" cannot be the key of an annotation',
    });
    // Of a part that is of another type, nothing else can be said.
    expect(refused(({ spec }) => Object.assign(spec, { tolerations: 'abc', containers: [{}] }))).toEqual({
      isAllowed: false,
      message: 'spec.template.spec.containers[0].name: is required; spec.template.spec.tolerations: must be a list',
    });
  });

  it('whose template is stored already can be changed elsewhere, whatever is wrong with the template', () => {
    const wrong = deployment(({ spec }) =>
      Object.assign(spec.template.spec, { tolerations: 'abc', containers: [{ name: 'shop', image: 'latest.jar' }] }),
    );
    const paused = { ...wrong, spec: { ...wrong.spec, paused: true } };
    expect(review(paused, { oldObject: wrong }).isAllowed).toBe(true);
    expect(review(paused, { oldObject: deployment() }).isAllowed).toBe(false);
    expect(review(paused).isAllowed).toBe(false);
  });

  it('cannot have a selector with a key that no label has', () => {
    const message = 'spec.selector.matchLabels: "a b" cannot be the key of a label';
    const wrong = deployment(({ spec }) => Object.assign(spec.selector.matchLabels, { 'a b': '' }));
    expect(review(wrong)).toEqual({ isAllowed: false, message });
  });

  it('is allowed with a warning when it has peer and replicas, of which one has no effect', () => {
    const peers = (replicas: number) => deployment(({ spec }) => Object.assign(spec, { peer: true, replicas }));
    const warned = { isAllowed: true, warnings: [expect.stringContaining('spec.replicas: has no effect')] };
    const silent = { isAllowed: true, warnings: [] };
    expect(review(peers(3))).toEqual(warned);
    expect(review(peers(1))).toEqual(silent);
    expect(review(peers(3), { oldObject: peers(5) })).toEqual(warned);
    expect(review(peers(5), { oldObject: peers(5) })).toEqual(silent);
  });

  it('is allowed with a warning when it shares labels with another', () => {
    const other = deployment((object) => {
      object.metadata.name = 'canary';
    });
    const warnings = [expect.stringContaining('ModuleDeployment canary')];
    expect(review(deployment(), { others: [other] })).toEqual({ isAllowed: true, warnings });
    const gone = { ...other, metadata: { ...other.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(review(deployment(), { others: [deployment(), gone] })).toEqual({ isAllowed: true, warnings: [] });
  });

  it('is allowed with a warning when the selector of only one of the two fits the Pods of the other', () => {
    const relabelled = (name: string) =>
      deployment((object) => {
        object.metadata.name = name;
        Object.assign(object.spec.template.metadata, { labels: { app: 'of-its-own' } });
      });
    const plain = deployment((object) => {
      object.metadata.name = 'plain';
    });
    const warningOf = (name: string) => [expect.stringContaining(`ModuleDeployment ${name}`)];
    expect(review(plain, { others: [relabelled('wide')] })).toEqual({ isAllowed: true, warnings: warningOf('wide') });
    expect(review(relabelled('wide'), { others: [plain] })).toEqual({ isAllowed: true, warnings: warningOf('plain') });
  });
});

it('the name of a ModuleDeployment has at most 63 characters, since labels hold it', () => {
  expect(JSON.stringify(MODULE_DEPLOYMENT_CRD)).toContain('"rule":"size(self.metadata.name) <= 63"');
});

it('the Pods of a ModuleDeployment have restartPolicy Always, as those of a Deployment', () => {
  const { template } = MODULE_DEPLOYMENT_SCHEMAS.spec.properties;
  expect(JSON.parse(JSON.stringify(template))).toMatchObject({
    properties: { spec: { properties: { restartPolicy: { type: 'string', enum: ['Always'] } } } },
  });
});
