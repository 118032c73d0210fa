import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../../src/platform/traits/template/template.ts';
import { run } from './support.ts';

function nested(depth: number): unknown {
  let data: unknown = 'x';
  for (let level = 0; level < depth; level++) data = [data];
  return data;
}

const DOUBLED = '{{ $x := "0123456789abcdef" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}';
const MANY_KEYS = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key${index}`, index]));

describe('a template beyond the limits is refused:', () => {
  it.each([
    ['too long', 'x'.repeat(LIMITS.templateBytes + 1), {}],
    ['a loop', '{{ range 9223372036854775807 }}{{ end }}', {}],
    ['loops in loops', '{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}', {}],
    ['a template that uses itself', '{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}', {}],
    [
      'two templates that use each other twice',
      '{{ define "a" }}{{ template "b" }}{{ template "b" }}{{ end }}{{ define "b" }}{{ template "a" }}{{ end }}{{ template "a" }}',
      {},
    ],
    ['parentheses', `{{ ${'('.repeat(5_000)}1${')'.repeat(5_000)} }}`, {}],
    ['blocks', `${'{{ if true }}'.repeat(2_000)}${'{{ end }}'.repeat(2_000)}`, {}],
    ['a chain of else', `{{ if false }}${'{{ else if false }}'.repeat(2_000)}{{ end }}`, {}],
    ['a long output', '{{ range 50000 }}0123456789{{ end }}', {}],
    ['a string that doubles', `${DOUBLED}{{ len $x }}`, {}],
    ['a width', '{{ printf "%900000d" 1 }}', {}],
    ['a width of an argument', '{{ printf "%*d" 900000 1 }}', {}],
    ['a precision', '{{ printf "%.900000d" 1 }}', {}],
    ['digits', '{{ printf "%.900000f" 1.5 }}', {}],
    ['blanks', '{{ indent 100000000 "a" }}', {}],
    ['blanks in each line', '{{ indent 10000 .lines }}', { lines: '\n'.repeat(100_000) }],
    ['a replacement', '{{ replace "a" .text .text }}', { text: 'a'.repeat(10_000) }],
    ['a list in itself, printed', '{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ $x }}', {}],
    ['a list in itself, as JSON', '{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ toJson $x }}', {}],
    ['a list in itself, as YAML', '{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ toYaml $x }}', {}],
    ['a list that doubles', '{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}', {}],
    ['a dict that doubles', '{{ $x := dict }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toYaml $x }}', {}],
    [
      'text read again and again',
      '{{ range 5000 }}{{ $x := sha256sum $.text }}{{ end }}',
      { text: 'a'.repeat(100_000) },
    ],
    [
      'text compared again and again',
      '{{ range 5000 }}{{ $x := eq $.a $.b }}{{ end }}',
      { a: 'a'.repeat(100_000), b: `${'a'.repeat(99_999)}b` },
    ],
    [
      'maps sorted again and again',
      '{{ range 5000 }}{{ range $.map }}{{ break }}{{ end }}{{ end }}',
      { map: MANY_KEYS },
    ],
    ['deep data', '{{ . }}', nested(300)],
    ['deep JSON', '{{ fromJson .text }}', { text: `${'['.repeat(5_000)}${']'.repeat(5_000)}` }],
    ['parts', '{{ range 50 }}{{ $x := split "" $.text }}{{ end }}', { text: 'a'.repeat(200_000) }],
    ['a far variable', `{{ $a := 1 }}${'{{ $b := 1 }}'.repeat(4_000)}{{ range 40000 }}{{ $x := $a }}{{ end }}`, {}],
  ])('%s', (_, template, data) => {
    expect(run(template, data)).toMatchObject({ fault: { code: 'Limit', message: expect.stringMatching(/\d/) } });
  });
});

describe('a template within the limits is rendered:', () => {
  it.each([
    ['a long text', 'x'.repeat(LIMITS.templateBytes), {}, LIMITS.templateBytes],
    ['many comments', '{{/* */}}'.repeat(7_000), {}, 0],
    ['many rounds', '{{ range 20000 }}.{{ end }}', {}, 20_000],
    ['the longest output', '{{ .text }}', { text: 'x'.repeat(LIMITS.outputBytes) }, LIMITS.outputBytes],
    ['deep blocks', `${'{{ if true }}'.repeat(90)}x${'{{ end }}'.repeat(90)}`, {}, 1],
    ['deep data', '{{ . }}', nested(90), 181],
    ['a number of many digits', `{{ ${'0'.repeat(60_000)}1e0 }}`, {}, 1],
  ])('%s', (_, template, data, length) => {
    const outcome = run(template, data);
    expect('text' in outcome ? outcome.text.length : outcome.fault).toBe(length);
  });
});
