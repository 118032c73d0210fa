import { expect, it } from 'vitest';
import type { Stage } from '../../../samples/demo/stage.ts';
import { runStep, untilFaultless } from '../../../samples/demo/step.ts';

/** A stage on which only changes happen. */
function emptyStage(part: object = {}) {
  const listeners = new Set<() => void>();
  const stage = {
    processes: [],
    onChange: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ...part,
  } as unknown as Stage;
  const change = () => {
    for (const listener of listeners) listener();
  };
  return { stage, change, listeners };
}

it('a step ends when its check finds no fault any more, and then listens to nothing', async () => {
  const { stage, change, listeners } = emptyStage();
  const faults = ['one'];
  const step = runStep(
    { name: 's', run: (context) => untilFaultless(context, () => faults) },
    { stage, timeoutMs: 60_000 },
  );
  change();
  faults.pop();
  change();
  await step;
  expect(listeners.size).toBe(0);
});

it('a step that takes too long fails with its name and what was last seen', async () => {
  const { stage, listeners } = emptyStage();
  const step = { name: 'bases appear', run: (context: never) => untilFaultless(context, () => ['no base']) };
  await expect(runStep(step, { stage, timeoutMs: 10 })).rejects.toMatchObject({
    message: 'bases appear: not seen within 0.01 s',
    lastSeen: ['no base'],
  });
  expect(listeners.size).toBe(0);
});

it('a step fails at once when the controller ends', async () => {
  const controller = { failWhenEnded: () => Promise.reject(new Error('the controller has ended with 1')) };
  const { stage } = emptyStage({ processes: [controller] });
  const step = { name: 'rollout', run: (context: never) => untilFaultless(context, () => ['waiting']) };
  await expect(runStep(step, { stage, timeoutMs: 60_000 })).rejects.toMatchObject({
    step: 'rollout',
    message: 'rollout: the controller has ended with 1',
    lastSeen: ['waiting'],
  });
});

it('a step fails with the error that it throws, one of a later check included', async () => {
  const { stage, change } = emptyStage();
  let count = 0;
  const check = () => {
    if (++count > 1) throw new Error('cannot tell');
    return ['not yet'];
  };
  const step = runStep({ name: 's', run: (context) => untilFaultless(context, check) }, { stage, timeoutMs: 60_000 });
  change();
  await expect(step).rejects.toThrow('s: cannot tell');
});
