import { parse } from 'yaml';

export interface ValueRow {
  /** `networkPolicy.egress.enabled`. */
  readonly path: string;
  readonly default: string;
  readonly meaning: string;
}

/** Keys whose value is a whole, not a group of values. */
const WHOLE = ['config', 'resources', 'labels', 'metricsFrom', 'dns'];

/** Each value of `values.yaml` with the comment above it. Throws for one without a comment. */
export function valueRowsOf(text: string): ValueRow[] {
  const comments = commentsOf(text);
  return leavesOf(parse(text)).map(([path, value]) => {
    const meaning = comments.get(path);
    if (!meaning) throw new Error(`values.yaml: ${path} has no comment`);
    return { path, default: JSON.stringify(value), meaning };
  });
}

function leavesOf(values: object, prefix = ''): [string, unknown][] {
  return Object.entries(values).flatMap(([key, value]) => {
    const path = prefix + key;
    const isGroup = !WHOLE.includes(key) && isMap(value) && Object.keys(value).length > 0;
    return isGroup ? leavesOf(value, `${path}.`) : [[path, value]];
  });
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** By path: the lines of comment right above a key. */
function commentsOf(text: string): Map<string, string> {
  const comments = new Map<string, string>();
  const above: { readonly key: string; readonly indent: number }[] = [];
  let comment: string[] = [];
  for (const line of text.split('\n')) {
    const [, words] = /^ *# ?(.*)$/.exec(line) ?? [];
    if (words !== undefined) {
      comment.push(words);
      continue;
    }
    const [, spaces = '', key] = /^( *)(\w+):/.exec(line) ?? [];
    if (key !== undefined) {
      while ((above.at(-1)?.indent ?? -1) >= spaces.length) above.pop();
      above.push({ key, indent: spaces.length });
      comments.set(above.map((part) => part.key).join('.'), comment.join(' '));
    }
    comment = [];
  }
  return comments;
}

const [START, END] = ['<!-- values: made by `npm run manifests` -->', '<!-- end of values -->'];

/** The page with its table of values. */
export function withValuesTable(page: string, rows: readonly ValueRow[]): string {
  const [before, rest] = page.split(START);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`the page has no place for values: ${START} … ${END}`);
  const lines = rows.map(({ path, default: text, meaning }) => {
    const cells = [`\`${path}\``, text === '""' ? '' : `\`${text}\``, meaning];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  const table = ['| Value | Default | Meaning |', '| --- | --- | --- |', ...lines].join('\n');
  return `${before}${START}\n\n${table}\n\n${END}${after}`;
}
