import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Rig, startRig } from './rig.ts';

const BASES = 500;
const MODULES = ['a', 'b', 'c', 'd', 'e'];

let rig: Rig;
beforeEach(async () => {
  rig = await startRig({ count: BASES, announce: false, installMs: 50 });
});
afterEach(() => rig.stop());

describe('500 bases', () => {
  it('announce at one moment and install 5 modules each: no message is lost, nothing happens twice', async () => {
    rig.fleet.announce();
    const answer = { kind: 'bizOperation' };
    for (const { identity } of rig.fleet.bases) {
      for (const bizName of MODULES) {
        rig.controller.send(identity, 'installBiz', { bizName, bizVersion: '1', bizUrl: `file:///${bizName}.jar` });
      }
    }
    await rig.fleet.history.waitFor({ outcome: 'executed' }, { count: BASES * MODULES.length, timeoutMs: 20_000 });
    await rig.controller.nth(BASES * MODULES.length, answer);
    await rig.controller.nth(BASES, { kind: 'heart' });
    const answered = rig.controller.all(answer).map((one) => `${one.identity} ${JSON.parse(one.text).data.bizName}`);
    expect(new Set(answered).size).toBe(BASES * MODULES.length);
    expect(answered).toHaveLength(BASES * MODULES.length);
    expect(rig.fleet.history.installCounts().every((count) => count.count === 1)).toBe(true);
    expect(new Set(rig.controller.all({ kind: 'queryBaseline' }).map((one) => one.identity)).size).toBe(BASES);
  });
});
