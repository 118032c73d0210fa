import { beforeEach, describe, expect, it } from 'vitest';
import { projectNode } from '../../../src/kinds/vnode-object.ts';
import { KnownNodes } from '../../../src/vnode/node-controller.ts';
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
