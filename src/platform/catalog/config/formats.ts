import { parseIni, writeIni } from './format/ini.ts';
import { parseJson, writeJson } from './format/json.ts';
import { parseProperties, writeProperties } from './format/properties.ts';
import { type ConfigMap, type ConfigValue, type Fault, FormatError, faultAt, isMap } from './format/value.ts';
import { checkXml } from './format/xml.ts';
import { parseYaml, writeYaml } from './format/yaml.ts';

export const FORMATS = ['yaml', 'properties', 'json', 'ini', 'xml', 'text'] as const;
export type ConfigFormat = (typeof FORMATS)[number];

/** Maximum size of a content, of all parts for single instances with it, and of what merging makes of it, in bytes. */
export const MAX_CONTENT_BYTES = 900_000;

/** How a format is read and written. `text` has no syntax. */
interface Syntax {
  readonly parse: (text: string) => ConfigValue;
  /** Undefined: a file replaces that of its parent as a whole. */
  readonly write?: (value: ConfigValue) => string;
}

const SYNTAXES: Readonly<Record<ConfigFormat, Syntax>> = {
  yaml: { parse: parseYaml, write: writeYaml },
  properties: { parse: parseProperties, write: (value) => writeProperties(asMap(value)) },
  json: { parse: (text) => (text.trim() === '' ? new Map() : parseJson(text)), write: writeJson },
  ini: { parse: parseIni, write: (value) => writeIni(asMap(value)) },
  xml: {
    parse: (text) => {
      if (text.trim() !== '') checkXml(text);
      return text;
    },
  },
  text: { parse: (text) => text },
};

export type Parsed = { readonly value: ConfigValue } | { readonly fault: Fault };
export type Merged = { readonly content: string } | { readonly fault: Fault; readonly of: 'parent' | 'child' };

/** Content of a file; an empty one has no keys. That of xml and text is the text itself. */
export function parseContent(format: ConfigFormat, text: string): Parsed {
  if (Buffer.byteLength(text) > MAX_CONTENT_BYTES) {
    return { fault: { line: 1, column: 1, message: `the file has more than ${MAX_CONTENT_BYTES} bytes` } };
  }
  // Editors of some systems put a byte order mark in front.
  const skipped = text.startsWith('\ufeff') ? 1 : 0;
  try {
    return { value: SYNTAXES[format].parse(text.slice(skipped)) };
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return { fault: faultAt(text, error.offset + skipped, error.message) };
  }
}

/**
 * A file over that of its parent: keys of maps one by one, also inside of maps; lists, scalars, and files of the formats
 * xml and text as a whole. Keys have the order of the parent, then those that only the child has. Comments are lost.
 */
export function mergeContents(format: ConfigFormat, parent: string, child: string): Merged {
  const { write } = SYNTAXES[format];
  const under = parseContent(format, parent);
  if ('fault' in under) return { ...under, of: 'parent' };
  const over = parseContent(format, child);
  if ('fault' in over) return { ...over, of: 'child' };
  return { content: write === undefined ? child : write(mergeValues(under.value, over.value)) };
}

/** A value over another one. */
export function mergeValues(under: ConfigValue, over: ConfigValue): ConfigValue {
  if (!isMap(under) || !isMap(over)) return over;
  const merged = new Map(under);
  for (const [key, value] of over) {
    const below = merged.get(key);
    merged.set(key, below === undefined ? value : mergeValues(below, value));
  }
  return merged;
}

function asMap(value: ConfigValue): ConfigMap {
  return isMap(value) ? value : new Map();
}
