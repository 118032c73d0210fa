import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { JavaWorld } from '../support/java-world.ts';
import { findPod, isReady, waitingReason } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';

/** Longer than a base may be silent, and in `npm run test:long` longer than a dead one is kept. */
const SLOW_SECONDS = process.env.TEST_LONG ? 90 : 35;
const OTHERS = process.env.TEST_LONG ? 8 : 3;

let java: JavaWorld;
let bases: Record<'http' | 'mqtt', JvmBase>;

beforeAll(async () => {
  java = await JavaWorld.start();
  const [http, mqtt] = (await java.startBases({
    // Four event loops: what the agent has on two cores, where a base does not ask for more.
    'over-http': { tunnel: 'http', jvmFlags: ['-Dio.netty.eventLoopThreads=4'] },
    'over-mqtt': { tunnel: 'mqtt' },
  })) as [JvmBase, JvmBase];
  bases = { http, mqtt };
});

afterAll(() => java?.stop());

/** Of the log: how each install of the base went, in order; an end without an answer shows too. */
function installsOf(base: JvmBase): string[] {
  return java.controller.lines
    .filter(({ node, msg }) => node === nodeNameOf(base.identity) && /^(sending install|base answered)/.test(msg))
    .filter(({ msg, command }) => msg === 'sending install' || command === 'install')
    .map(({ msg, module, outcome = '', reason = '' }) => `${module} ${msg} ${outcome} ${reason}`.trimEnd());
}

describe.concurrent(`an install that takes ${SLOW_SECONDS} s`, () => {
  it.for(['http', 'mqtt'] as const)(
    'is commanded once, and other modules of the base come and go meanwhile, over %s',
    { timeout: 300_000 },
    async (tunnel) => {
      const base = bases[tunnel];
      const nodes = await Spectator.watch(java.admin, '/api/v1/nodes');
      const slow = `slow-${tunnel}`;
      await java.create(slow, base, { ...java.module('faulty'), args: [`--start-seconds=${SLOW_SECONDS}`] });
      await eventually(async () => {
        expect(waitingReason(await findPod(java.admin, slow))).toBe('ContainerCreating');
      });
      for (let round = 1; round <= OTHERS; round++) {
        const other = `other-${tunnel}-${round}`;
        await java.create(other, base, java.module('price'));
        await java.ready(other);
        await java.remove(other);
      }
      expect(isReady(await findPod(java.admin, slow))).toBe(false); // else this was no test of "meanwhile"
      const { status } = await java.ready(slow, 2 * SLOW_SECONDS * 1_000);
      expect(status?.containerStatuses?.[0]?.restartCount).toBe(0);
      const others = Array.from({ length: OTHERS }, () => [
        'price:1.0.0 sending install',
        'price:1.0.0 base answered done',
      ]);
      // A Pod is Ready as soon as a list of the base shows the module, which may come before the answer to the command.
      await eventually(() => {
        expect(installsOf(base)).toEqual([
          'faulty:1.0.0 sending install',
          ...others.flat(),
          'faulty:1.0.0 base answered done',
        ]);
      });
      nodes.stop();
      expect(nodes.everNotReady()).toEqual([]);
    },
  );
});
