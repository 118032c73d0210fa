import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/objects.ts';
import { createKubeLanes, type KubeLanes } from '../../../src/kube/transport/kube-lanes.ts';
import { SharedInformer } from '../../../src/kube/watch/informer.ts';
import type { CachedObject, InformerHandler } from '../../../src/kube/watch/informer-types.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { bookmark, listEnd, staticAccess } from './support/rig.ts';
import { bytesOf, type Cut, WatchedTruth, type WatchLine } from './support/watched-truth.ts';

const AT_ONCE = 40;
const LAST_VERSION = '21';
/** Characters of two, three and four bytes, in names and in what else is read. */
const B = 'bär-名';

const BEFORE: readonly WatchLine[] = [
  line('ADDED', 'a', 1),
  line('ADDED', B, 2, { uid: 'one', note: 'é' }),
  listEnd(5),
  line('MODIFIED', 'a', 7, { note: 'größer 漢字 🙂' }),
  line('DELETED', B, 8, { uid: 'one', note: 'é' }),
  line('ADDED', 'c', 9),
  bookmark(12),
  line('ADDED', B, 13, { uid: 'two', note: '🙂🙂' }),
  { type: 'ERROR', object: { code: 410 } },
];
/** After the 410 a is gone, c has changed and d is new. */
const AFTER: readonly WatchLine[] = [
  line('ADDED', B, 13, { uid: 'two', note: '🙂🙂' }),
  line('ADDED', 'c', 16, { note: 'ß' }),
  line('ADDED', 'd', 17),
  listEnd(20),
  line('MODIFIED', 'd', Number(LAST_VERSION), { note: '末' }),
];

const SEEN_WITHOUT_CUT = [
  ...['add a@1', `add ${B}@2 é`, 'update a@1 a@7 größer 漢字 🙂', `delete ${B}@8 é`, 'add c@9', `add ${B}@13 🙂🙂`],
  ...['update c@9 c@16 ß', 'add d@17', 'delete a@7 größer 漢字 🙂', 'update d@17 d@21 末'],
];
const TRUTH = [`${B}@13 🙂🙂`, 'c@16 ß', 'd@21 末'].sort();

interface Noted extends CachedObject {
  readonly note: string;
}

/** As short as an event can be: each of its bytes costs a run. */
function line(type: string, name: string, version: number, { uid = name, note = '' } = {}): WatchLine {
  const annotations = note === '' ? {} : { annotations: { note } };
  return { type, object: { metadata: { name, uid, resourceVersion: String(version), ...annotations } } };
}

const label = ({ name, resourceVersion, note }: Noted): string => `${name}@${resourceVersion} ${note}`.trim();

function project({ metadata }: KubeObject): Noted {
  const { namespace = '', name, uid = '', resourceVersion = '', annotations = {} } = metadata;
  return { namespace, name, uid, resourceVersion, note: annotations.note ?? '' };
}

/** A handler that keeps a copy of the cache of its own, and what it was told that does not fit it. */
class Follower implements InformerHandler<Noted> {
  readonly seen: string[] = [];
  readonly wrong: string[] = [];
  /** Resolves with the last change of the story. */
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  readonly #cache = new Map<string, Noted>();
  /** The newest version of each UID; it stays when the object is gone. */
  readonly #newest = new Map<string, number>();

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  onAdd(object: Noted): void {
    if (this.#cache.has(object.name)) this.wrong.push(`added twice: ${label(object)}`);
    this.#take(`add ${label(object)}`, object);
  }

  onUpdate(old: Noted, object: Noted): void {
    if (this.#cache.get(object.name) !== old || old.uid !== object.uid)
      this.wrong.push(`not the old one: ${label(old)}`);
    this.#take(`update ${old.name}@${old.resourceVersion} ${label(object)}`, object);
  }

  onDelete(last: Noted): void {
    if (this.#cache.get(last.name)?.uid !== last.uid) this.wrong.push(`deleted twice: ${label(last)}`);
    this.seen.push(`delete ${label(last)}`);
    this.#cache.delete(last.name);
  }

  #take(what: string, object: Noted): void {
    const version = Number(object.resourceVersion);
    if (version <= (this.#newest.get(object.uid) ?? 0)) this.wrong.push(`again: ${what}`);
    this.#newest.set(object.uid, version);
    this.seen.push(what);
    this.#cache.set(object.name, object);
    if (object.resourceVersion === LAST_VERSION) this.#end();
  }
}

let truth: WatchedTruth;
let lanes: KubeLanes;
const clock = new FakeClock();
const metrics = createMetrics();
/** Ends what a failure has left running: without waits it would ask closed lanes for ever. */
const end = new AbortController();

beforeAll(async () => {
  truth = await WatchedTruth.start();
  lanes = createKubeLanes({ access: staticAccess(truth.url), clock, metrics });
});

afterAll(async () => {
  end.abort();
  await lanes.close();
  await truth.stop();
});

/** Follows the story once, its first answer cut at `cutAt`, and resolves when the truth has come. */
async function follow(cutAt: number, cut: Cut) {
  const path = `/${cut}/${cutAt}`;
  truth.tell(path, { before: BEFORE, after: AFTER, cutAt, cut });
  const abort = new AbortController();
  const follower = new Follower();
  const informer = new SharedInformer<Noted>({
    ...{ kind: 'pods', path, project, lane: lanes.watches, clock, metrics, logger: silentLogger },
    // No back-off waits: the clock stands still.
    random: () => 0,
  });
  informer.addHandler(follower);
  const running = informer.run(AbortSignal.any([abort.signal, end.signal]));
  await follower.ended;
  abort.abort();
  await running;
  return { at: cutAt, follower, store: informer.list().map(label).sort(), asked: truth.asked.get(path) ?? [] };
}

/** What is asked for after a cut there: the newest version whose line was whole. */
function resumedFrom(cutAt: number): string {
  const whole = bytesOf(BEFORE).subarray(0, cutAt).toString().split('\n').length - 1;
  const versions = BEFORE.slice(0, whole).map(({ object }) => object.metadata?.resourceVersion);
  return whole < 3 || whole === BEFORE.length ? 'list' : String(versions.at(-1));
}

describe('an informer whose watch is cut', () => {
  it.each<[Cut, string, number]>([
    ['FIN', 'any byte', 1],
    ['RST', 'each fifth byte', 5],
    ['end', 'each fifth byte', 5],
  ])(
    'with %s at %s goes on from the last whole event: nothing is missed, nothing comes twice',
    async (cut, _where, step) => {
      const { length } = bytesOf(BEFORE);
      const offsets = Array.from({ length: Math.ceil((length + 1) / step) }, (_, index) => index * step);
      while (offsets.length > 0) {
        for (const { at, follower, store, asked } of await Promise.all(
          offsets.splice(0, AT_ONCE).map((offset) => follow(offset, cut)),
        )) {
          expect({ at, store, wrong: follower.wrong }).toEqual({ at, store: TRUTH, wrong: [] });
          // A reset may take with it what was sent before it.
          if (cut !== 'RST')
            expect([at, asked[1], ...follower.seen]).toEqual([at, resumedFrom(at), ...SEEN_WITHOUT_CUT]);
        }
      }
      const errors = [metrics.informerParseErrors, metrics.informerHandlerErrors];
      for (const counter of errors) expect((await counter.get()).values.filter(({ value }) => value > 0)).toEqual([]);
    },
  );
});
