import { type Crd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import type { KubeObject } from '../../src/kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../src/kube/resource.ts';
import { type CachedObject, objectKey } from '../../src/kube/watch/informer-types.ts';
import { type ControllerModule, groupOf } from '../../src/reconcile/controller-module.ts';
import type { WatchedKind } from '../../src/reconcile/informers.ts';
import { Reconciler } from '../../src/reconcile/reconciler.ts';

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
export const THING_CONTROLLER: ControllerModule = {
  name: 'things',
  crds: [CRD],
  build: ({ informers, resourcesOf, leaderOf, ...shared }) => {
    const things = informers.get(WATCHED);
    const client = resourcesOf('things').of<Thing>(THINGS);
    const leader = leaderOf('things');
    const isLeading = (): boolean => leader.isLeading();
    const reconcile = async (key: string): Promise<undefined> => {
      const thing = things.get(key);
      if (thing === undefined || thing.seen === thing.size) return;
      await client.mergePatch(thing, { status: { seen: thing.size } }, { subresource: 'status', permit: isLeading });
    };
    const reconciler = new Reconciler({ name: 'things', workers: 2, reconcile, leader, ...shared });
    reconciler.watch({ informer: things, keysOf: (thing) => [objectKey(thing)] });
    return { groups: [groupOf({ things: reconciler, 'leader of things': leader })] };
  },
};
