import type { SourceFile } from '../unit/docs/sources.ts';

/** A class of a source file, from its head to its closing brace. */
export interface ClassText {
  readonly name: string;
  readonly body: string;
  readonly fields: readonly Field[];
  readonly methods: readonly Method[];
}

export interface Field {
  readonly name: string;
  /** The name of its type, or of the class that it is created from. */
  readonly type: string;
  readonly isMutable: boolean;
}

export interface Method {
  readonly name: string;
  readonly body: string;
}

const CLASS = /^(?:export )?class (\w+)([^\n]*)\{\n([\s\S]*?)^\}$/gm;
const FIELD = /^ {2}(readonly )?(#?\w+)(?:\??: ([^\n]*?))?(?: = ([^\n]*))?;$/gm;
const METHOD = /^ {2}(?:async )?(#?\w+)\((?:[^\n]*|\n(?: {4}[^\n]*\n)+ {2}[^\n]*)\{\n([\s\S]*?)^ {2}\}$/gm;
const CONTAINER = /^(new (Map|Set|WeakMap|LruMap|Uint32Array)\b|\[\]|Array\.from)/;
const MODULE_STATE = /^(?:export )?(?:let \w+|const \w+ = new (?:Map|Set|WeakMap|LruMap)\b)/gm;

/** The classes of a file. Constructors and getters are no methods here. */
export function classesOf({ bare }: Pick<SourceFile, 'bare'>): ClassText[] {
  return [...bare.matchAll(CLASS)].map(([, name = '', head = '', body = '']) => ({
    name,
    body,
    fields: [
      ...(/\bextends (Map|Set)\b/.test(head) ? [{ name: 'its entries', type: 'Map', isMutable: true }] : []),
      ...[...body.matchAll(FIELD)].map(([, readonly, field = '', type = '', value = '']) => ({
        name: field,
        type: /^new (\w+)/.exec(value)?.[1] ?? type,
        isMutable: readonly === undefined || CONTAINER.test(value),
      })),
    ],
    methods: [...body.matchAll(METHOD)]
      .map(([, method = '', text = '']) => ({ name: method, body: text }))
      .filter((method) => method.name !== 'constructor'),
  }));
}

/** What a file holds that changes: fields of its classes and variables of its module. */
export function stateOf(file: SourceFile): string[] {
  const fields = classesOf(file).flatMap(({ name, fields: all }) =>
    all.filter(({ isMutable }) => isMutable).map((field) => `${name}.${field.name}`),
  );
  return [...fields, ...[...file.bare.matchAll(MODULE_STATE)].map(([found]) => found)];
}
