import { expect, it } from 'vitest';
import { type Crd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import { schemaDigests } from '../manifests/schema-digests.ts';

const NAME = 'samples.example.com';

function crdOf(revision: number, description: string): Crd {
  const names = { kind: 'Sample', plural: 'samples' };
  const versions = [{ name: 'v1', served: true, storage: true, schema: { description } }];
  return {
    metadata: { name: NAME, annotations: { [SCHEMA_ANNOTATION]: String(revision) } },
    spec: { group: 'example.com', scope: 'Namespaced', names, versions },
  };
}

it('a schema that has changed needs a higher revision', () => {
  const kept = schemaDigests({}, [crdOf(3, 'before')]);
  expect(schemaDigests(kept, [crdOf(3, 'before')])).toEqual(kept);
  const error = `the schema of ${NAME} has changed: raise its schemaRevision above 3`;
  expect(() => schemaDigests(kept, [crdOf(3, 'after')])).toThrow(error);
  expect(() => schemaDigests(kept, [crdOf(2, 'after')])).toThrow(error);
  expect(schemaDigests(kept, [crdOf(4, 'after')])[NAME]).toMatchObject({ revision: '4' });
});
