import { type Crd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import type { KubeObject } from '../../src/kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../src/kube/resource.ts';
import { type CachedObject, objectKey } from '../../src/kube/watch/informer-types.ts';
import { READ } from '../../src/reconcile/access.ts';
import { type ControllerDefinition, groupOf } from '../../src/reconcile/controller-definition.ts';
import type { WatchedKind } from '../../src/reconcile/informers.ts';
import { ledReconciler } from '../../src/reconcile/led.ts';

const names = { kind: 'Thing', plural: 'things' };
const THINGS: ResourceKind = { group: 'example.com', version: 'v1', ...names, isNamespaced: true };

interface Thing extends KubeObject {
  readonly spec: { readonly size: number };
  readonly status?: { readonly seen?: number };
}

const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
const versions = [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }];
const CRD: Crd = {
  metadata: { name: 'things.example.com', annotations: { [SCHEMA_ANNOTATION]: '1' } },
  spec: { group: THINGS.group, scope: 'Namespaced', names, versions },
};

type CachedThing = CachedObject & { readonly size: number; readonly seen: number | undefined };
const WATCHED: WatchedKind<CachedThing> = {
  kind: names.kind,
  path: collectionPathOf(THINGS),
  project: (raw) => {
    const { metadata, spec, status } = raw as Thing;
    const { namespace = '', name, uid = '', resourceVersion = '' } = metadata;
    return { namespace, name, uid, resourceVersion, size: spec.size, seen: status?.seen };
  },
};

/** A whole controller: the leader writes the size of each Thing into its status. */
export const THING_CONTROLLER: ControllerDefinition = {
  name: 'things',
  summary: 'the size of each Thing in its status',
  access: [
    { kind: THINGS, verbs: READ, use: 'SharedInformer: Things.' },
    { kind: THINGS, subresource: 'status', verbs: ['patch'], use: 'things: the size that was seen.' },
  ],
  leads: true,
  crds: [{ crd: CRD, usersMay: 'view' }],
  build: (context) => {
    const { informers, resources, permit } = context;
    const things = informers.get(WATCHED);
    const client = resources.of<Thing>(THINGS);
    const reconcile = async (key: string): Promise<undefined> => {
      const thing = things.get(key);
      if (thing === undefined || thing.seen === thing.size) return;
      await client.mergePatch(thing, { status: { seen: thing.size } }, { subresource: 'status', permit });
    };
    const reconciler = ledReconciler('things', context, { workers: 2, reconcile });
    reconciler.watch({ informer: things, keysOf: (thing) => [objectKey(thing)] });
    return { groups: [groupOf({ things: reconciler })] };
  },
};
