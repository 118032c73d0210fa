import { afterAll, beforeAll, expect, it } from 'vitest';
import { modulePod } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 1 });
});

afterAll(() => rig?.stop());

it('a Pod hands args and env over to the base, in a message that is not retained', async () => {
  const pod = modulePod('args', [{ name: 'args', args: ['--a=1', 'b'] }], { nodeName: 'vnode.base-1' });
  pod.spec.containers[0]?.env.push({ name: 'COLOUR', value: 'blue' });
  await rig.create(pod);
  await rig.readyPod('args');
  const sent = rig.world.aedes.recorder
    .records({ topic: 'koupleless_dev/base-1/installBiz' })
    .find(({ payload }) => payload?.includes('"bizName":"args"'));
  expect(JSON.parse(String(sent?.payload))).toMatchObject({ args: ['--a=1', 'b'], envs: { COLOUR: 'blue' } });
  expect(sent?.retain).toBe(false);
});
