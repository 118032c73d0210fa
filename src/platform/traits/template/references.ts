import type { Bytes } from './bytes.ts';
import type { Block, Command, Node, Pipeline, Term } from './tree.ts';

/** A field of the data that a template names. */
export interface FieldReference {
  readonly names: readonly Bytes[];
  /** Place in the template, in bytes. */
  readonly at: number;
}

/**
 * Fields of the data that a template surely reads from its root: `$.Params.NAME`, and `.Params.NAME` where the dot is
 * the data. The fields of a variable, of an item or of a value in parentheses are found out by rendering only.
 */
export function fieldReferencesOf(trees: ReadonlyMap<Bytes, Block>, name: Bytes): FieldReference[] {
  const finder = new Finder(trees);
  finder.template(name);
  return finder.found;
}

/** Whether dot and `$` are the data. */
interface Scope {
  readonly isDotRoot: boolean;
  readonly isDollarRoot: boolean;
}

class Finder {
  readonly found: FieldReference[] = [];
  readonly #trees: ReadonlyMap<Bytes, Block>;
  /** Templates that get the data as it is. */
  readonly #seen = new Set<Bytes>();

  constructor(trees: ReadonlyMap<Bytes, Block>) {
    this.#trees = trees;
  }

  template(name: Bytes): void {
    const tree = this.#trees.get(name);
    if (tree === undefined || this.#seen.has(name)) return;
    this.#seen.add(name);
    this.#block(tree, { isDotRoot: true, isDollarRoot: !declaresDollar(tree) });
  }

  #block(block: Block, scope: Scope): void {
    for (const node of block) this.#node(node, scope);
  }

  #node(node: Node, scope: Scope): void {
    if (!('pipeline' in node) || node.pipeline === undefined) return;
    this.#pipeline(node.pipeline, scope);
    if (node.kind === 'template' && isRoot(node.pipeline, scope)) this.template(node.name);
    if (!('body' in node)) return;
    this.#block(node.body, { ...scope, isDotRoot: scope.isDotRoot && node.kind === 'if' });
    if (node.otherwise !== undefined) this.#block(node.otherwise, scope);
  }

  #pipeline({ commands }: Pipeline, scope: Scope): void {
    for (const { terms } of commands) for (const term of terms) this.#term(term, scope);
  }

  #term(term: Term, scope: Scope): void {
    if (term.kind === 'pipeline') this.#pipeline(term, scope);
    else if (term.kind === 'chain') this.#term(term.of, scope);
    else if (term.kind === 'field' && scope.isDotRoot) this.found.push({ names: term.names, at: term.at });
    else if (term.kind === 'variable' && term.name === '$' && term.fields.length > 0 && scope.isDollarRoot) {
      this.found.push({ names: term.fields, at: term.at });
    }
  }
}

/** Whether the value of a pipeline is the data. */
function isRoot({ commands }: Pipeline, { isDotRoot, isDollarRoot }: Scope): boolean {
  const [command, ...others] = commands;
  if (command === undefined || others.length > 0 || command.terms.length > 1) return false;
  const [term] = command.terms;
  if (term.kind === 'dot') return isDotRoot;
  return term.kind === 'variable' && term.name === '$' && term.fields.length === 0 && isDollarRoot;
}

/** Whether a tree gives `$` another value somewhere. */
function declaresDollar(block: Block): boolean {
  return block.some((node) => {
    if (!('pipeline' in node) || node.pipeline === undefined) return false;
    if (setsDollar(node.pipeline)) return true;
    return 'body' in node && (declaresDollar(node.body) || declaresDollar(node.otherwise ?? []));
  });
}

function setsDollar({ variables, commands }: Pipeline): boolean {
  return variables.includes('$') || commands.some(({ terms }: Command) => terms.some(setsDollarWithin));
}

function setsDollarWithin(term: Term): boolean {
  if (term.kind === 'pipeline') return setsDollar(term);
  return term.kind === 'chain' && setsDollarWithin(term.of);
}
