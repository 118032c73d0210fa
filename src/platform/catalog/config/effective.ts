import { type ConfigFormat, MAX_CONTENT_BYTES, mergeContents, parseContent } from './formats.ts';
import { sizeOf } from './version.ts';

/** Most ModuleConfigs in a line of parents, the child included. */
export const MAX_PARENTS = 16;

/** The version of a parent that is in force. */
export interface ParentVersion {
  readonly id: string;
  /** Its content, which holds that of its own parents. */
  readonly content: string;
}

/** The ModuleConfig named as a parent. */
export interface Parent {
  readonly format: ConfigFormat;
  readonly parent: string | undefined;
  /** Undefined: none is. */
  readonly inForce: ParentVersion | undefined;
}

export interface EffectiveInput {
  readonly name: string;
  readonly format: ConfigFormat;
  readonly parent: string | undefined;
  readonly content: string;
  readonly instances: Readonly<Record<string, string>>;
  /** Undefined: there is no ModuleConfig of the name. */
  readonly find: (name: string) => Parent | undefined;
}

export type EffectiveFault = {
  readonly reason: 'ContentInvalid' | 'ParentInvalid';
  readonly message: string;
};
export type Effective =
  | {
      readonly content: string;
      /** `{name}@{version}` of the parent. Its version names its own parents. */
      readonly parents: readonly string[];
    }
  | { readonly fault: EffectiveFault };

/**
 * The content of a ModuleConfig over that of its parent in force. Without a parent it is the content as it was written.
 * A parent that waits for its own parent does not hand on what it has not taken itself.
 */
export function effectiveOf(input: EffectiveInput): Effective {
  const { name, format, parent, content, instances } = input;
  const line = parentFault(input);
  if (line !== undefined) return faultOf('ParentInvalid', line);
  for (const [what, text] of [['spec.content', content], ...Object.entries(instances).map(partOf)] as const) {
    const parsed = parseContent(format, text);
    if (!('fault' in parsed)) continue;
    const { line: at, column, message } = parsed.fault;
    return faultOf('ContentInvalid', `${what}, line ${at}, column ${column}: ${message}`);
  }
  if (parent === undefined) return { content, parents: [] };
  const inForce = input.find(parent)?.inForce;
  if (inForce === undefined) return faultOf('ParentInvalid', `no version of ModuleConfig ${parent} is active yet`);
  const merged = mergeContents(format, inForce.content, content);
  if ('fault' in merged) return faultOf('ParentInvalid', `ModuleConfig ${parent}: ${merged.fault.message}`);
  const size = sizeOf({ content: merged.content, instances });
  if (size > MAX_CONTENT_BYTES) {
    const message = `${name} merged with ${parent} has ${size} bytes: at most ${MAX_CONTENT_BYTES} are possible`;
    return faultOf('ContentInvalid', message);
  }
  return { content: merged.content, parents: [`${parent}@${inForce.id}`] };
}

function partOf([instance, text]: [string, string]): [string, string] {
  return [`spec.instances[${instance}]`, text];
}

/** What is wrong with the line of parents. */
function parentFault({ name, format, parent, find }: EffectiveInput): string | undefined {
  const line = [name];
  for (let next = parent; next !== undefined; ) {
    if (line.includes(next))
      return `the parents form a cycle: ${[...line.slice(line.indexOf(next)), next].join(' > ')}`;
    const found = find(next);
    const child = line.at(-1);
    if (found === undefined) return `there is no ModuleConfig ${next}, the parent of ${child}`;
    if (found.format !== format) {
      return `ModuleConfig ${next}, the parent of ${child}, has the format ${found.format} instead of ${format}`;
    }
    line.push(next);
    if (line.length > MAX_PARENTS) return `the line of parents is longer than ${MAX_PARENTS}: ${line.join(' > ')}`;
    next = found.parent;
  }
  return undefined;
}

function faultOf(reason: EffectiveFault['reason'], message: string): Effective {
  return { fault: { reason, message } };
}
