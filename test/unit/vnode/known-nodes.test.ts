import { beforeEach, describe, expect, it } from 'vitest';
import { projectNode } from '../../../src/kinds/vnode-object.ts';
import { KnownNodes } from '../../../src/vnode/known-nodes.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeInformer } from '../../support/fake-informer.ts';

const NAME = 'vnode.b1';
let informer: FakeInformer<ReturnType<typeof projectNode>>;
let known: KnownNodes;

function nodeOf(uid: string, resourceVersion: string) {
  return { metadata: { name: NAME, uid, resourceVersion } };
}

beforeEach(() => {
  informer = new FakeInformer(new FakeClock(), projectNode);
  known = new KnownNodes(informer);
  known.addCreated(projectNode(nodeOf('u1', '5')));
});

describe('the TTL annotation of the next Node', () => {
  const nodeWith = (name: string, ttl: string, resourceVersion: string) => ({
    metadata: { name, uid: name, resourceVersion, annotations: { 'node.alpha.kubernetes.io/ttl': ttl } },
  });

  it('follows from the number of VNodes in the cache and of those that were just created', () => {
    // One is created already.
    for (let index = 0; index < 98; index++)
      informer.deliver({ type: 'PUT', object: nodeWith(`vnode.n${index}`, '0', '6') });
    expect(known.ttlSecondsOfNext()).toBe(0);
    known.addCreated(projectNode({ metadata: { name: 'vnode.b2', uid: 'u2', resourceVersion: '7' } }));
    expect(known.ttlSecondsOfNext()).toBe(15);
    informer.deliver({ type: 'DELETED', object: nodeWith('vnode.n0', '0', '8') });
    expect(known.ttlSecondsOfNext()).toBe(0);
  });

  it('is at least what a VNode showed last: the cluster may have many other Nodes', () => {
    informer.deliver({ type: 'PUT', object: nodeWith('vnode.n1', '60', '6') });
    expect(known.ttlSecondsOfNext()).toBe(60);
    informer.deliver({ type: 'PUT', object: nodeWith('vnode.n1', '30', '7') });
    expect(known.ttlSecondsOfNext()).toBe(30);
    informer.deliver({ type: 'PUT', object: nodeWith('vnode.n1', 'x', '8') });
    expect(known.ttlSecondsOfNext()).toBe(30);
  });
});

describe('a Node that this process has created', () => {
  it('is known before the watch shows it', () => {
    expect(known.get(NAME)?.uid).toBe('u1');
  });

  it('is what the watch says from then on, a deletion too', () => {
    informer.deliver({ type: 'PUT', object: nodeOf('u1', '5') });
    expect(known.get(NAME)?.uid).toBe('u1');
    informer.deliver({ type: 'DELETED', object: nodeOf('u1', '6') });
    expect(known.get(NAME)).toBeUndefined();
  });

  it('is known no longer when it was found to be gone', () => {
    known.forgetCreated(NAME);
    expect(known.get(NAME)).toBeUndefined();
  });

  it('is forgotten before later handlers look', () => {
    const seen: (string | undefined)[] = [];
    informer.addHandler({ onDelete: ({ name }) => void seen.push(known.get(name)?.uid) });
    informer.deliver({ type: 'PUT', object: nodeOf('u1', '5') });
    known.addCreated(projectNode(nodeOf('u1', '5')));
    informer.deliver({ type: 'DELETED', object: nodeOf('u1', '6') });
    expect(seen).toEqual([undefined]);
  });
});
