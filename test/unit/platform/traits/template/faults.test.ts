import { describe, expect, it } from 'vitest';
import { parseTemplate, renderTemplate } from '../../../../../src/platform/traits/template/template.ts';
import { run } from './support.ts';

function faultOf(template: string, data: unknown = {}) {
  const outcome = run(template, data);
  return 'fault' in outcome ? outcome.fault : undefined;
}

describe('a fault of a template', () => {
  it('has the code, the place and the line around it', () => {
    expect(faultOf('kind: Deployment\nname: {{ .AppName | nope }}\n')).toEqual({
      code: 'Syntax',
      template: 'trait',
      line: 2,
      column: 21,
      message: 'function "nope" not defined',
      excerpt: 'name: {{ .AppName | nope }}',
    });
  });

  it('counts columns in characters', () => {
    expect(faultOf('世界 😀 {{ .x }}')).toMatchObject({
      code: 'Execution',
      line: 1,
      column: 9,
      excerpt: '世界 😀 {{ .x }}',
    });
  });

  it('has a bounded part of a long line', () => {
    const fault = faultOf(`${'a'.repeat(500)}{{ .x }}${'b'.repeat(500)}`);
    expect(fault?.excerpt).toBe(`${'a'.repeat(57)}{{ .x }}${'b'.repeat(55)}`);
  });

  it.each([
    ['{{ .a.b.c }}', '.a.b: the map has no entry for key "b"'],
    ['{{ $.a.b }}', '$.a.b: the map has no entry for key "b"'],
    ['{{ $x := .a }}{{ $x.b }}', '$x.b: the map has no entry for key "b"'],
    ['{{ (dict "k" 1).b }}', '(...).b: the map has no entry for key "b"'],
    ['{{ .n.b }}', '.n.b: nil data; no entry for key "b"'],
    ['{{ .s.b }}', ".s.b: can't evaluate field b in type string"],
  ])('names the path of a missing key: %s', (template, message) => {
    expect(faultOf(template, { a: {}, n: null, s: 'x' })).toMatchObject({ code: 'Execution', message });
  });

  it('of required is the message of the template', () => {
    expect(faultOf('{{ required "Set ÄPFEL" "" }}')).toMatchObject({ code: 'Execution', message: 'Set ÄPFEL' });
  });

  it('has a bounded message', () => {
    expect(faultOf(`{{ ${'a'.repeat(5_000)} }}`)?.message.length).toBe(300);
  });

  it('has the place within a template that another one uses', () => {
    expect(faultOf('{{ define "a" }}\n  {{ .x }}{{ end }}{{ template "a" . }}')).toMatchObject({ line: 2, column: 6 });
  });

  it('of data has a reason', () => {
    expect(faultOf('x', { n: 2 ** 60 })).toMatchObject({
      code: 'Unsupported',
      message: expect.stringContaining('2^53'),
    });
  });
});

describe('a template', () => {
  it('can be rendered with other data again', () => {
    const parsed = parseTemplate('trait', '{{ $x := .a }}{{ range .b }}{{ $x }}{{ . }}{{ end }}');
    if ('fault' in parsed) throw new Error(parsed.fault.message);
    expect(renderTemplate(parsed.template, { a: 1, b: [1, 2] })).toEqual({ text: '1112' });
    expect(renderTemplate(parsed.template, { a: 2, b: [] })).toEqual({ text: '' });
    expect(renderTemplate(parsed.template, { a: 1 })).toHaveProperty('fault');
    expect(renderTemplate(parsed.template, { a: 1, b: [1, 2] })).toEqual({ text: '1112' });
  });

  it('sees own properties only', () => {
    const data = Object.create({ inherited: 'x' });
    expect(run('{{ .inherited }}', data)).toHaveProperty('fault');
    expect(run('{{ hasKey . "inherited" }}', data)).toEqual({ text: 'false' });
    expect(run('{{ hasKey . "constructor" }}', {})).toEqual({ text: 'false' });
  });

  it('does not change its data', () => {
    const data = { a: { b: [1] } };
    run('{{ $x := .a }}{{ $x = dict "b" 2 }}{{ $x }}', data);
    expect(data).toEqual({ a: { b: [1] } });
  });
});
