import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { eventually } from '../support/eventually.ts';
import { JavaWorld } from '../support/java-world.ts';
import type { ModuleOptions } from '../support/manifests.ts';
import { findNode, kibOf } from '../support/observe.ts';

const LIMIT_MIB = 256;
const GROWTH_MIB = 16;
/** What a Node may lag behind (docs/reference.md, "What a Node looks like"). */
const STEP_KIB = 1024;

let java: JavaWorld;
let limited: JvmBase;
let unlimited: JvmBase;
let textFile: string;

/** A base for each: what happens to the one is no matter of the other. */
const TUNNELS = [
  ['http', () => limited],
  ['mqtt', () => unlimited],
] as const;

beforeAll(async () => {
  java = await JavaWorld.start();
  [limited, unlimited] = (await java.startBases({
    limited: { tunnel: 'http', jvmFlags: [`-XX:MaxMetaspaceSize=${LIMIT_MIB}m`] },
    unlimited: { tunnel: 'mqtt' },
  })) as [JvmBase, JvmBase];
});

afterAll(() => java?.stop());

/** What its Node says, in KiB. */
async function memoryOf({ identity }: JvmBase) {
  const node = await findNode(java.admin, identity);
  const { capacity, allocatable } = node?.status ?? {};
  return {
    used: kibOf(node?.metadata.annotations?.['platform.koupleless.io/metaspace-used']),
    capacity: capacity?.memory ? kibOf(capacity.memory) : undefined,
    allocatable: allocatable?.memory ? kibOf(allocatable.memory) : undefined,
  };
}

interface Failing {
  readonly what: string;
  readonly name: string;
  readonly module: () => ModuleOptions;
  readonly reason: string;
  readonly says: string;
}

/** Each of another name, so that one base can have them all at once. */
const FAILING: readonly Failing[] = [
  {
    what: 'its start throws',
    name: 'throws',
    module: () => ({ ...java.module('faulty'), args: ['--fail=no-database-today'] }),
    reason: 'RunContainerError',
    says: 'no-database-today',
  },
  {
    what: 'its jar is missing on the server',
    name: 'missing',
    module: () => ({ name: 'nowhere', image: java.jarServer.urlOf('nowhere-1.0.0-ark-biz.jar') }),
    reason: 'ErrImagePull',
    says: 'nowhere-1.0.0-ark-biz.jar',
  },
  {
    what: 'its jar is missing in the file system',
    name: 'no-file',
    module: () => ({ name: 'no-file', image: 'file:///nowhere-1.0.0-ark-biz.jar' }),
    reason: 'ErrImagePull',
    says: '/nowhere-1.0.0-ark-biz.jar (No such file or directory)',
  },
  {
    what: 'its jar is no archive',
    name: 'no-archive',
    module: () => ({ name: 'text', image: `file://${textFile}` }),
    reason: 'ErrImagePull',
    says: 'sofa-ark-maven-plugin',
  },
  {
    what: 'its jar is an ordinary one',
    name: 'no-module',
    module: () => ({ name: 'base', image: java.jarServer.urlOf('base.jar') }),
    reason: 'ErrImagePull',
    says: 'sofa-ark-maven-plugin',
  },
  {
    what: 'its jar is of another version',
    name: 'version',
    module: () => ({ ...java.module('price'), version: '1.0.1' }),
    reason: 'ErrImagePull',
    says: 'the jar contains module price:1.0.0',
  },
  {
    what: 'its jar is another module',
    name: 'other',
    module: () => ({ ...java.module('shop'), name: 'discount' }),
    reason: 'ErrImagePull',
    says: 'the jar contains module shop:1.0.0',
  },
];

describe('a module that cannot run', () => {
  /** By Pod: the message of its container, which is watched from its creation on. */
  const messages = new Map<string, Promise<string>>();

  beforeAll(async () => {
    textFile = join(java.directory, 'text.jar');
    await writeFile(textFile, 'this is no jar\n');
    for (const [tunnel, baseOf] of TUNNELS) {
      for (const { name, module, reason } of FAILING) {
        const pod = `${name}-${tunnel}`;
        await java.create(pod, baseOf(), module());
        const message = java.waitingMessage(pod, reason);
        message.catch(() => {}); // the test of this Pod awaits it
        messages.set(pod, message);
      }
    }
  });

  afterAll(() => java.clear());

  describe.each(TUNNELS)('on a JVM over %s', (tunnel) => {
    it.each(FAILING)('says why: $what', async ({ name, reason, says }) => {
      const pod = `${name}-${tunnel}`;
      expect(await messages.get(pod)).toContain(says);
      await java.failedEvent(pod, reason, says);
    });
  });
});

describe('a JVM that is killed in the middle of an install', () => {
  afterAll(() => java.clear());

  it.concurrent.each(TUNNELS)(
    'and started again with the same identity gets all its modules anew, over %s',
    async (tunnel, baseOf) => {
      const base = baseOf();
      const [whole, half] = [`whole-${tunnel}`, `half-${tunnel}`];
      await java.create(whole, base, java.module('price'));
      const { metadata } = await java.ready(whole);
      await java.create(half, base, { ...java.module('faulty'), args: ['--start-seconds=10'] });
      await eventually(async () => expect(await base.modules()).toContain('faulty:1.0.0 RESOLVED'));
      await base.kill();
      await base.run();
      await java.ready(half);
      const again = await java.ready(whole);
      expect(again.metadata.uid).toBe(metadata.uid);
      expect(again.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      expect((await base.modules()).sort()).toEqual(['faulty:1.0.0 ACTIVATED', 'price:1.0.0 ACTIVATED']);
    },
  );
});

describe('a JVM that is told to end', () => {
  afterAll(() => java.clear());

  it.concurrent.each(TUNNELS)(
    'says so: its Node goes, and is there again with the next start, over %s',
    async (tunnel, baseOf) => {
      const base = baseOf();
      await java.create(`left-${tunnel}`, base, java.module('price'));
      await java.ready(`left-${tunnel}`);
      const before = await findNode(java.admin, base.identity);
      await base.stop();
      // Sooner than silence alone would tell.
      await eventually(async () => expect(await findNode(java.admin, base.identity)).toBeUndefined(), 20_000);
      await base.run();
      await java.schedulable(base);
      expect((await findNode(java.admin, base.identity))?.metadata.uid).not.toBe(before?.metadata.uid);
      expect(await base.modules()).toEqual([]);
    },
  );
});

describe('the metaspace of a JVM', () => {
  afterAll(() => java.clear());

  it('is the capacity of its Node where it has a limit, and no capacity where it has none', async () => {
    const { capacity, allocatable } = await memoryOf(limited);
    expect(capacity).toBe(LIMIT_MIB * 1024);
    expect(allocatable).toBeLessThan(LIMIT_MIB * 1024);
    expect(allocatable).toBeGreaterThan(0);
    expect(await memoryOf(unlimited)).toEqual({
      used: expect.any(Number),
      capacity: undefined,
      allocatable: undefined,
    });
  });

  it.concurrent.each(TUNNELS)(
    'grows with a module, and its Node shows it within 15 s of the install, over %s',
    async (tunnel, baseOf) => {
      const base = baseOf();
      // A Node's memory is written at most once in 15 s: the last time was not just now.
      let shown = { used: -1, since: 0 };
      await eventually(async () => {
        const { used } = await memoryOf(base);
        if (used !== shown.used) shown = { used, since: Date.now() };
        expect(Date.now() - shown.since).toBeGreaterThan(5_000);
      });
      const before = await usedMetaspaceOf(base);
      const name = `grows-${tunnel}`;
      await java.create(name, base, { ...java.module('faulty'), args: [`--metaspace-mib=${GROWTH_MIB}`] });
      await java.ready(name);
      const after = await usedMetaspaceOf(base);
      expect(after).toBeGreaterThan(before + (GROWTH_MIB * 1024) / 2); // a collection may have taken what others left
      await eventually(async () => expect((await memoryOf(base)).used).toBeGreaterThan(after - STEP_KIB), 15_000);
    },
  );
});

/** KiB, as the JVM itself says. */
async function usedMetaspaceOf(base: JvmBase): Promise<number> {
  const answer = (await base.command('health')) as { data: { healthData: { jvm: Record<string, number> } } };
  return Math.floor((answer.data.healthData.jvm['java used metaspace'] ?? 0) / 1024);
}
