import { expect, it } from 'vitest';
import { parseTemplate, referencesOf } from '../../../../../src/platform/traits/template/template.ts';

function pathsOf(template: string): string[] {
  const parsed = parseTemplate('trait', template);
  if ('fault' in parsed) throw new Error(parsed.fault.message);
  return referencesOf(parsed.template).map(({ names }) => names.join('.'));
}

it.each([
  ['{{ .A.B }}{{ $.C }}{{ . }}{{ $ }}', ['A.B', 'C']],
  ['{{ print .A (upper .B) | printf "%s" $.C }}', ['A', 'B', 'C']],
  ['{{ if .A }}{{ .B }}{{ else if .C }}{{ .D }}{{ else }}{{ .E }}{{ end }}', ['A', 'B', 'C', 'D', 'E']],
  ['{{ with .A }}{{ .B }}{{ $.C }}{{ else }}{{ .D }}{{ end }}', ['A', 'C', 'D']],
  ['{{ range .A }}{{ .B }}{{ if true }}{{ .C }}{{ $.D }}{{ end }}{{ else }}{{ .E }}{{ end }}', ['A', 'D', 'E']],
  ['{{ (dict "x" .A).x }}{{ (.B).C }}', ['A', 'B']],
  ['{{ define "t" }}{{ .A }}{{ $.B }}{{ end }}{{ template "t" . }}{{ template "t" $ }}', ['A', 'B']],
  ['{{ define "t" }}{{ .A }}{{ end }}{{ template "t" .X }}{{ template "t" }}', ['X']],
  ['{{ define "t" }}{{ .A }}{{ template "t" . }}{{ end }}{{ template "t" . }}', ['A']],
  ['{{ block "t" . }}{{ .A }}{{ end }}', ['A']],
  ['{{ $x := .A }}{{ $x.B }}', ['A']],
  ['{{ $ := dict "A" 1 }}{{ $.A }}{{ .B }}', ['B']],
  ['{{ print ($ := dict "A" 1) $.A }}', []],
])('%s reads %j', (template, paths) => {
  expect(pathsOf(template)).toEqual(paths);
});

it('has the place of a field', () => {
  const parsed = parseTemplate('trait', 'ä\nö {{ .A }}');
  expect('template' in parsed && referencesOf(parsed.template)).toEqual([{ names: ['A'], line: 2, column: 6 }]);
});
