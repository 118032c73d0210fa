import { addKey, Budget, type ConfigMap, type ConfigValue, FormatError, isMap } from './value.ts';

/**
 * Content of an ini file: `key = value` in sections `[name]`, comment lines with `;` or `#`. Keys in front of the first
 * section belong to none. A section may stand in several places. Throws a FormatError.
 */
export function parseIni(text: string): ConfigValue {
  const budget = new Budget();
  const root = new Map<string, ConfigValue>();
  const sections = new Map<string, Map<string, ConfigValue>>();
  let current = root;
  for (const { 0: line, index } of text.matchAll(/[^\r\n]+/g)) {
    const content = line.trim();
    const at = index + line.length - line.trimStart().length;
    if (content === '' || content.startsWith(';') || content.startsWith('#')) continue;
    budget.add(at);
    if (content.startsWith('[')) {
      const name = sectionIn(content, at);
      const known = sections.get(name);
      current = known ?? new Map();
      if (known === undefined) {
        addKey(root, name, current, at);
        sections.set(name, current);
      }
      continue;
    }
    const equals = content.indexOf('=');
    const key = content.slice(0, equals).trim();
    if (equals < 0) throw new FormatError(at, 'a line must be a [section], key = value, or a comment with ; or #');
    if (key === '') throw new FormatError(at, 'a key must stand in front of "="');
    addKey(current, key, content.slice(equals + 1).trim(), at);
  }
  return root;
}

function sectionIn(content: string, at: number): string {
  const name = content.endsWith(']') ? content.slice(1, -1).trim() : '';
  if (name === '') throw new FormatError(at, 'a section must be a name in brackets, with nothing behind it');
  return name;
}

/** An ini file: the keys without a section, then the sections. */
export function writeIni(root: ConfigMap): string {
  const entries = [...root];
  const blocks = entries.flatMap(([name, value]) => (isMap(value) ? [`[${name}]\n${linesOf([...value])}`] : []));
  const keys = linesOf(entries.filter(([, value]) => !isMap(value)));
  return [...(keys === '' ? [] : [keys]), ...blocks].join('\n');
}

function linesOf(entries: readonly (readonly [string, ConfigValue])[]): string {
  return entries
    .map(([key, value]) => `${key} = ${value}`.trimEnd())
    .map((line) => `${line}\n`)
    .join('');
}
