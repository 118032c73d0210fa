import { pages, readText, sourceFilesOf, TOKEN } from '../unit/docs/sources.ts';

const NAME = /\b[a-zA-Z_$][\w$]*\b/g;

export type Area = 'strings' | 'pages' | 'names' | 'comments';

export interface Text {
  readonly path: string;
  /** Of where the text begins, from 1. */
  readonly line: number;
  readonly text: string;
}

/** All that a person reads, by where it stands. Decisions and the changelog are pages too. */
export function textsOf(area: Area): Text[] {
  if (area === 'pages') return pages().flatMap((path) => linesOf(path, proseOf(readText(path))));
  return sourceFilesOf('src', 'tunnels').flatMap(({ path }) => textsOfSource(path, readText(path), area));
}

function linesOf(path: string, text: string): Text[] {
  return text.split('\n').map((line, index) => ({ path, line: index + 1, text: line }));
}

/** Without blocks of code and what stands in backticks: these are names. */
function proseOf(markdown: string): string {
  return markdown
    .replace(/^ *```[\s\S]*?^ *```$/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]*`/g, '`…`');
}

function textsOfSource(path: string, source: string, area: Exclude<Area, 'pages'>): Text[] {
  const found: Text[] = [];
  const rest = source.replace(TOKEN, (token, at: number) => {
    const isComment = token.startsWith('/');
    const line = source.slice(0, at).split('\n').length;
    if (isComment && area === 'comments') found.push({ path, line, text: token.replace(/`[^`\n]*`/g, '`…`') });
    // A word alone is a key or a name.
    if (!isComment && area === 'strings' && /\s/.test(token)) found.push({ path, line, text: token });
    return isComment ? token.replace(/[^\n]/g, ' ') : "''";
  });
  if (area === 'names') for (const [name] of rest.matchAll(NAME)) found.push({ path, line: 0, text: name });
  return found;
}
