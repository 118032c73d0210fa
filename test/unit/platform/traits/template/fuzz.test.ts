import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BUILD_TIMEOUT_MS } from '../../../../support/go-tools/programs.ts';
import { TemplateJudge } from '../../../../support/go-tools/template-judge.ts';
import { runsOf } from '../../../../support/property-runs.ts';
import { changedCases, formats, soups, strings, templates, values } from './arbitraries.ts';
import { DATA, differenceOf, NAME, run } from './support.ts';

let judge: TemplateJudge;
beforeAll(async () => {
  judge = await TemplateJudge.start();
}, BUILD_TIMEOUT_MS);
afterAll(() => judge.stop());

/** Numbers of outcomes of a property, by the code of the fault or `text`. */
type Counts = Record<string, number>;

/** Compares with Go, but for templates that are refused by choice or by a limit: Go may take long over them. */
async function compare(template: string, data: unknown, counts: Counts): Promise<void> {
  const outcome = run(template, data);
  const code = 'fault' in outcome ? outcome.fault.code : 'text';
  counts[code] = (counts[code] ?? 0) + 1;
  if (code === 'Limit' || code === 'Unsupported') return;
  expect(differenceOf(outcome, await judge.ask({ name: NAME, template, data }))).toBeUndefined();
}

/** Draws cases, and gives the shares of their outcomes. */
async function check<T>(cases: fc.Arbitrary<T>, runs: number, read: (drawn: T) => [template: string, data: unknown]) {
  const counts: Counts = {};
  const property = fc.asyncProperty(cases, (drawn) => compare(...read(drawn), counts));
  await fc.assert(property, { numRuns: runsOf(runs) });
  if (process.env.SHOW_OUTCOMES) console.log(counts);
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (code: string): number => (counts[code] ?? 0) / total;
}

describe('templates that are drawn', () => {
  it('are accepted and refused as by Go, and have its text', async () => {
    const share = await check(templates, 1_000, (template) => [template, DATA]);
    // The grammar reaches each kind of outcome, and little is refused by choice.
    expect(share('text')).toBeGreaterThan(0.05);
    expect(share('Execution')).toBeGreaterThan(0.05);
    expect(share('Syntax')).toBeGreaterThan(0.05);
    expect(share('Unsupported')).toBeLessThan(0.1);
  });

  it('are accepted and refused as by Go where a case of the corpus is changed', async () => {
    const share = await check(changedCases, 1_000, ({ template, data }) => [template, data]);
    expect(share('text')).toBeGreaterThan(0.05);
    expect(share('Syntax')).toBeGreaterThan(0.05);
  });

  it('are refused as by Go where they have no grammar', async () => {
    const share = await check(soups, 500, (template) => [template, DATA]);
    expect(share('Syntax')).toBeGreaterThan(0.2);
  });

  it.each([
    '{{ . }} {{ print . 1 . }}',
    '{{ printf "%v|%#v|%s|%d|%q|%x" . . . . . . }}',
    '{{ toJson . }}',
    '{{ toYaml . }}',
    '{{ quote . }} {{ html . }} {{ js . }} {{ urlquery . }} {{ join "," . }}',
    '{{ range $k, $v := . }}{{ $k }}={{ $v }};{{ else }}none{{ end }}',
    '{{ if . }}yes{{ else }}no{{ end }}{{ len . }}{{ not . }}{{ default 1 . }}',
    '{{ eq . . }} {{ lt . . }}',
    '{{ upper . }} {{ lower . }} {{ trim . }} {{ b64enc . }} {{ sha256sum . }} {{ split "a" . }} {{ indent 2 . }}',
    '{{ toJson . | fromJson | printf "%#v" }}',
  ])('write any value as Go does: %s', async (template) => {
    const share = await check(values, 100, (data) => [template, data]);
    expect(share('Unsupported')).toBeLessThan(0.5);
  });

  it('write any string as Go does', async () => {
    const template =
      '{{ toYaml .s }}|{{ toYaml . }}|{{ quote .s }}|{{ toJson .s }}|{{ upper .s }}|{{ lower .s }}|{{ trim .s }}|{{ js .s }}';
    await check(strings, 500, (s) => [template, { s, [s]: [s] }]);
  });

  it('read any JSON as Go does', async () => {
    const texts = fc.oneof(
      values.map((value) => JSON.stringify(value)),
      strings,
      fc.json(),
    );
    await check(texts, 300, (text) => ['{{ fromJson . | printf "%#v" }}', text]);
  });

  it('decode any base64 as Go does', async () => {
    const texts = fc.oneof(
      fc.base64String(),
      fc.string({ unit: fc.constantFrom('A', 'b', '9', '+', '/', '=', '\n', '\r', '-'), maxLength: 9 }),
    );
    await check(texts, 300, (text) => ['{{ b64dec . | printf "%q" }}', text]);
  });

  it('print any format as Go does', async () => {
    const share = await check(fc.tuple(formats, fc.array(values, { maxLength: 3 })), 1_000, ([format, items]) => [
      `{{ printf .f ${items.map((_, index) => `(index .v ${index})`).join(' ')} }}`,
      { f: format, v: items },
    ]);
    expect(share('text')).toBeGreaterThan(0.5);
  });

  it('print any float as Go does', async () => {
    const floats = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer().map((n) => n / 64),
    );
    await check(
      fc.tuple(floats, fc.nat({ max: 30 }), fc.constantFrom(...'efgEG')),
      500,
      ([number, precision, verb]) => [
        `{{ printf "%.${precision}${verb} %${verb} %v" . . . }}`,
        Number.isInteger(number) ? number + 0.5 : number,
      ],
    );
  });
});
