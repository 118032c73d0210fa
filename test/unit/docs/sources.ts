import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

export const ROOT = new URL('../../../', import.meta.url);

export interface Import {
  /** A path from the root of the repository, or the name of a package or of a part of Node. */
  readonly target: string;
  readonly isOfRepository: boolean;
  /** Nothing of it is left when the program runs. */
  readonly isTypeOnly: boolean;
  readonly isDynamic: boolean;
}

export interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly lineCount: number;
  /** Without comments. */
  readonly code: string;
  /** Without comments and the text of strings: what is left is done, not said. */
  readonly bare: string;
  readonly imports: readonly Import[];
}

/** All TypeScript and JavaScript below the directories, in the order of their paths. */
export function sourceFilesOf(...directories: readonly string[]): SourceFile[] {
  const paths = directories.flatMap((directory) =>
    readdirSync(new URL(`${directory}/`, ROOT), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|js)$/.test(name))
      .map((name) => posix.join(directory, name)),
  );
  return paths.sort().map(readSource);
}

/** All pages of the repository, from its root. */
export function pages(): string[] {
  const inFolders = ['deploy', 'docs', 'samples', 'test'].flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !/(^|\/)(node_modules|target)\//.test(name))
      .map((name) => posix.join(folder, name)),
  );
  const atRoot = readdirSync(ROOT).filter((name) => name.endsWith('.md'));
  return [...atRoot, ...inFolders].sort();
}

export function readText(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** Strings and comments: an address in a string is no comment, and a quote in a comment begins no string. */
export const TOKEN = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;

export function readSource(path: string): SourceFile {
  const text = readText(path);
  const code = text.replace(TOKEN, (found) => (found.startsWith('/') ? '' : found));
  const bare = code.replace(TOKEN, (found) => (found.startsWith('`') ? insertionsOf(found) : "''"));
  return { path, lineCount: text.split('\n').length - 1, code, bare, imports: importsOf(path, code) };
}

function insertionsOf(template: string): string {
  return (template.match(/\$\{[^}]*\}/g) ?? ["''"]).join(' ');
}

const STATIC_IMPORT = /^(?:import|export)\b(?:([^;'"]*?)\sfrom)?\s*'([^']+)'/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*'([^']+)'\s*\)/g;
const TYPE_QUERY = /\btypeof import\(\s*'([^']+)'\s*\)/g;

function importsOf(path: string, code: string): Import[] {
  const fixed = [...code.matchAll(STATIC_IMPORT)].map(([, names = '', target = '']) =>
    importOf(path, target, { isTypeOnly: isTypeOnly(names), isDynamic: false }),
  );
  const types = [...code.matchAll(TYPE_QUERY)].map(([, target = '']) =>
    importOf(path, target, { isTypeOnly: true, isDynamic: false }),
  );
  const dynamic = [...code.replace(TYPE_QUERY, '').matchAll(DYNAMIC_IMPORT)].map(([, target = '']) =>
    importOf(path, target, { isTypeOnly: false, isDynamic: true }),
  );
  return [...fixed, ...types, ...dynamic];
}

function importOf(path: string, target: string, how: Pick<Import, 'isTypeOnly' | 'isDynamic'>): Import {
  const isOfRepository = target.startsWith('.');
  return { ...how, isOfRepository, target: isOfRepository ? posix.join(posix.dirname(path), target) : target };
}

/** `type X`, or braces in which every name is marked so. */
function isTypeOnly(names: string): boolean {
  const text = names.trim();
  if (/^type\b/.test(text)) return true;
  const inBraces = /^\{([\s\S]*)\}$/.exec(text)?.[1];
  const parts = inBraces?.split(',').filter((part) => part.trim() !== '') ?? [];
  return parts.length > 0 && parts.every((part) => /^\s*type\s/.test(part));
}
