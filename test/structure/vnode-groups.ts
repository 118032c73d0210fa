import { type SourceFile, sourceFilesOf } from '../unit/docs/sources.ts';
import { type ClassText, classesOf, type Method } from './state.ts';

/** A group of a VNode's state, or the VNode itself. */
export interface Group {
  /** The field of the VNode that holds the group. Empty for the VNode itself. */
  readonly field: string;
  readonly type: string;
  readonly state: readonly string[];
  /** The files that call each method that changes the state. */
  readonly callers: ReadonlyMap<string, readonly string[]>;
}

/** The folders from which a VNode can be reached. */
const FILES = sourceFilesOf('src/assembly', 'src/pod', 'src/vnode');
/** Collections and limits of a VNode that other files change in place. */
const IN_PLACE = ['vanishedPods', 'pendingRemovals', 'unknown', 'contact', 'lists', 'changes', 'reports'];
const IN_PLACE_METHODS = 'add|set|delete|clear|admit|asked|refused|takeSkipped';

/** The groups of a VNode with what they hold, and who calls the methods that change it. */
export function vnodeGroups(): Group[] {
  const classes = new Map(FILES.flatMap(classesOf).map((found) => [found.name, found]));
  const vnode = classes.get('VNode');
  if (vnode === undefined) throw new Error('there is no class VNode');
  const groups = vnode.fields.flatMap(({ name, type }) => {
    const found = FILES.some(({ path, bare }) => path.startsWith('src/vnode/') && bare.includes(`class ${type} `))
      ? classes.get(type)
      : undefined;
    return found === undefined ? [] : [groupOf(name, found)];
  });
  return [...groups, ownGroupOf(vnode, groups)];
}

function groupOf(field: string, found: ClassText): Group {
  const isChange = (text: string): boolean => /this\.#?\w+ (\?\?|\+)?= |this\.#?\w+\.clear\(/.test(text);
  const callers = mutatingOf(found.methods, isChange).map(
    (method) => [method, filesWith(String.raw`\b${field.replace('#', '')}\??\.${method}\(`)] as const,
  );
  return { field, type: found.name, state: stateNamesOf(found), callers: new Map(callers) };
}

/** The methods of the VNode, which change several groups. */
function ownGroupOf(vnode: ClassText, groups: readonly Group[]): Group {
  const calls = groups.flatMap(({ field, callers }) => [...callers.keys()].map((method) => `this.${field}.${method}(`));
  const isChange = (text: string): boolean => [...calls, 'this.ledger.'].some((call) => text.includes(call));
  const others = ['this', ...groups.map(({ field }) => field)].join('|');
  const callers = mutatingOf(vnode.methods, isChange).map(
    (method) => [method, filesWith(String.raw`(?<![#\w.])(?!(?:${others})\b)\w+\??\.${method}\(`)] as const,
  );
  return { field: '', type: vnode.name, state: stateNamesOf(vnode), callers: new Map(callers) };
}

/** The public methods that change the state, by themselves or by a call of another one. */
function mutatingOf(methods: readonly Method[], isChange: (text: string) => boolean): string[] {
  const found = new Set<string>();
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { name, body } of methods) {
      if (isChange(body) || [...found].some((other) => body.includes(`this.${other}(`))) found.add(name);
    }
  }
  return [...found].filter((name) => !name.startsWith('#'));
}

function stateNamesOf({ fields }: ClassText): string[] {
  return fields.filter(({ isMutable }) => isMutable).map(({ name }) => name.replace('#', ''));
}

/** The files that change a collection or a limit of a VNode in place. */
export function changedInPlace(): Map<string, readonly string[]> {
  return new Map(IN_PLACE.map((name) => [name, filesWith(String.raw`\b${name}\.((${IN_PLACE_METHODS})\(|\w+ = )`)]));
}

/** The files that assign a field of a group. The compiler refuses that, unless there is a cast. */
export function outsideAssignments(): readonly string[] {
  const fields = vnodeGroups().flatMap(({ field }) => (field === '' ? [] : [field.replace('#', '')]));
  return filesWith(String.raw`\.(${fields.join('|')})\.\w+ (\+|\?\?)?= `);
}

function filesWith(pattern: string): readonly string[] {
  const found = new RegExp(pattern);
  return FILES.filter(({ bare }: SourceFile) => found.test(bare)).map(({ path }) => path);
}
