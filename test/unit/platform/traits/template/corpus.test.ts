import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BUILD_TIMEOUT_MS } from '../../../../support/go-tools/programs.ts';
import { TemplateJudge } from '../../../../support/go-tools/template-judge.ts';
import { corpus, differenceOf, NAME, run } from './support.ts';

let judge: TemplateJudge;
beforeAll(async () => {
  judge = await TemplateJudge.start();
}, BUILD_TIMEOUT_MS);
afterAll(() => judge.stop());

describe.each(corpus())('templates of %s', (_, cases) => {
  it.each(cases)('$template', async ({ template, data, refused }) => {
    const outcome = run(template, data);
    const code = 'fault' in outcome ? outcome.fault.code : undefined;
    expect(code === 'Unsupported' || code === 'Limit' ? code : undefined).toBe(refused);
    // Go may take long over a template that is refused.
    if (refused !== undefined) return;
    expect(differenceOf(outcome, await judge.ask({ name: NAME, template, data }))).toBeUndefined();
  });
});

it('are 200 or more', () => {
  expect(corpus().flatMap(([, cases]) => cases).length).toBeGreaterThanOrEqual(200);
});
