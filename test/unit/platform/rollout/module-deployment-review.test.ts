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
