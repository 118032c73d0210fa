import {
  type BinaryExpression,
  type CallExpression,
  type ConditionalExpression,
  isBinaryExpression,
  isCallExpression,
  isConditionalExpression,
  isElementAccessExpression,
  isFunctionLikeDeclaration,
  isNonNullExpression,
  isNumericLiteral,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isReturnStatement,
  isTypeNode,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';

/** One token of a file replaced by another, or removed. */
export interface Mutant {
  readonly path: string;
  readonly operator: Operator;
  /** From 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly from: string;
  readonly to: string;
  /** The smallest expression or statement around the token that a probe can stand before. */
  readonly probe: { readonly start: number; readonly end: number; readonly isStatement: boolean };
}

/** What each operator replaces; `--help` and the documentation show this text. */
export const OPERATORS = {
  boundary: '< and <=, > and >=',
  equality: '=== and !==',
  logic: '&& and ||; ?? becomes &&',
  negation: '!x becomes x',
  arithmetic: '+ and -, * and /, % becomes *, += and -=, ++ and --',
  boolean: 'true and false',
  number: 'n becomes n + 1; from 100 on, where one more is no fault that anyone sees, 2n; of a ? -1 : 1 the sign',
  collection: 'delete(x) and add(x) become has(x)',
  call: 'some and every, min and max, floor and ceil, startsWith and endsWith, shift and pop',
  jump: 'continue and break, in loops',
  return: 'a return without a value is removed',
} as const;

export type Operator = keyof typeof OPERATORS;

const BINARY: Readonly<Record<string, readonly [Operator, string]>> = {
  '<': ['boundary', '<='],
  '<=': ['boundary', '<'],
  '>': ['boundary', '>='],
  '>=': ['boundary', '>'],
  '===': ['equality', '!=='],
  '!==': ['equality', '==='],
  '&&': ['logic', '||'],
  '||': ['logic', '&&'],
  '??': ['logic', '&&'],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '%': ['arithmetic', '*'],
  '+=': ['arithmetic', '-='],
  '-=': ['arithmetic', '+='],
};

const METHODS: Readonly<Record<string, readonly [Operator, string]>> = {
  delete: ['collection', 'has'],
  add: ['collection', 'has'],
  some: ['call', 'every'],
  every: ['call', 'some'],
  min: ['call', 'max'],
  max: ['call', 'min'],
  floor: ['call', 'ceil'],
  ceil: ['call', 'floor'],
  startsWith: ['call', 'endsWith'],
  endsWith: ['call', 'startsWith'],
  shift: ['call', 'pop'],
  pop: ['call', 'shift'],
};

/** From here on a number is taken for a limit or a duration. */
const LARGE = 100;

const LOOPS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.ForStatement,
  SyntaxKind.ForOfStatement,
  SyntaxKind.ForInStatement,
  SyntaxKind.WhileStatement,
  SyntaxKind.DoStatement,
]);

/** All mutants of a file, in the order of the text, as often as the compiler of types may still refuse one. */
export function mutantsOf(file: SourceFile, path: string): Mutant[] {
  const found: Mutant[] = [];
  const visit = (node: Node): undefined => {
    if (isTypeNode(node) || isLogCall(node)) return;
    const change = changeOf(node, file);
    if (change !== undefined) found.push(mutant(file, path, change));
    node.forEachChild(visit);
  };
  visit(file);
  return found.sort((one, other) => one.start - other.start);
}

export function mutatedText(text: string, { start, end, to }: Mutant): string {
  return text.slice(0, start) + to + text.slice(end);
}

/** The text with a call of `probe(index)` before the code of each of the mutants, which does what it did. */
export function probedText(
  text: string,
  mutants: readonly (readonly [index: number, Mutant])[],
  probe: string,
): string {
  const inserts = mutants.flatMap(
    ([
      index,
      {
        probe: { start, end, isStatement },
      },
    ]) => [
      // Of two that begin at one place, the outer one first; of two that end there, the inner one.
      {
        at: start,
        isEnd: false,
        size: start - end,
        text: isStatement ? `{${probe}(${index});` : `(${probe}(${index}),`,
      },
      { at: end, isEnd: true, size: end - start, text: isStatement ? '}' : ')' },
    ],
  );
  inserts.sort((one, other) => one.at - other.at || Number(other.isEnd) - Number(one.isEnd) || one.size - other.size);
  let result = '';
  let done = 0;
  for (const { at, text: inserted } of inserts) {
    result += text.slice(done, at) + inserted;
    done = at;
  }
  return result + text.slice(done);
}

interface Change {
  readonly operator: Operator;
  readonly to: string;
  /** What is replaced. */
  readonly start: number;
  readonly end: number;
  readonly node: Node;
}

function changeOf(node: Node, file: SourceFile): Change | undefined {
  const whole = { start: node.getStart(file), end: node.end, node };
  if (isBinaryExpression(node)) {
    const token = node.operatorToken;
    const swap = BINARY[token.getText(file)];
    if (swap === undefined || (swap[0] === 'boundary' && makesNoDifferenceAtEquality(node, file))) return;
    return { operator: swap[0], to: swap[1], start: token.getStart(file), end: token.end, node };
  }
  if (isPrefixUnaryExpression(node)) return prefixChange(node.operator, whole);
  if (isPostfixUnaryExpression(node)) {
    const to = node.operator === SyntaxKind.PlusPlusToken ? '--' : '++';
    return { operator: 'arithmetic', to, start: node.end - 2, end: node.end, node };
  }
  if (isCallExpression(node)) return callChange(node, file);
  if (isReturnStatement(node)) return returnChange(node.expression, whole);
  return literalChange(whole, file) ?? jumpChange(whole, file);
}

type Whole = Pick<Change, 'start' | 'end' | 'node'>;

function prefixChange(operator: SyntaxKind, { start, node }: Whole): Change | undefined {
  switch (operator) {
    case SyntaxKind.ExclamationToken:
      return { operator: 'negation', to: '', start, end: start + 1, node };
    case SyntaxKind.PlusPlusToken:
      return { operator: 'arithmetic', to: '--', start, end: start + 2, node };
    case SyntaxKind.MinusMinusToken:
      return { operator: 'arithmetic', to: '++', start, end: start + 2, node };
    default:
      return;
  }
}

function callChange(node: CallExpression, file: SourceFile): Change | undefined {
  const { expression } = node;
  if (!isPropertyAccessExpression(expression)) return;
  const { name } = expression;
  const text = name.getText(file);
  const swap = Object.hasOwn(METHODS, text) ? METHODS[text] : undefined;
  if (swap === undefined || (swap[0] === 'collection' && node.arguments.length !== 1)) return;
  return { operator: swap[0], to: swap[1], start: name.getStart(file), end: name.end, node };
}

/** Only where something follows: at the end of a function nothing returns either. */
function returnChange(value: Node | undefined, whole: Whole): Change | undefined {
  const block = whole.node.parent;
  const isLast = block.kind === SyntaxKind.Block && isFunctionLikeDeclaration(block.parent);
  return value !== undefined || isLast ? undefined : { operator: 'return', to: ';', ...whole };
}

function literalChange(whole: Whole, file: SourceFile): Change | undefined {
  const { node } = whole;
  if (isNumericLiteral(node)) return isName(node) ? undefined : numberChange(whole, file);
  if (node.kind === SyntaxKind.FalseKeyword) return { operator: 'boolean', to: 'true', ...whole };
  if (node.kind !== SyntaxKind.TrueKeyword || isOfOnce(node)) return;
  return { operator: 'boolean', to: 'false', ...whole };
}

function numberChange(whole: Whole, file: SourceFile): Change {
  const { node } = whole;
  const { parent } = node;
  if (isOrder(parent, file)) return { operator: 'number', to: '-1', ...whole };
  if (isPrefixUnaryExpression(parent) && isOrder(parent.parent, file))
    return { operator: 'number', to: '1', start: parent.getStart(file), end: parent.end, node: parent };
  return { operator: 'number', to: more(whole, file), ...whole };
}

/** `a < b ? -1 : 1`: whoever sorts by it looks at its sign alone. */
function isOrder(node: Node, file: SourceFile): boolean {
  return isConditionalExpression(node) && resultsOf(node, file) === '-1,1';
}

const JUMPS: Readonly<Record<string, string>> = { 'continue;': 'break;', 'break;': 'continue;' };

function jumpChange({ start, end, node }: Whole, file: SourceFile): Change | undefined {
  if (node.kind !== SyntaxKind.ContinueStatement && node.kind !== SyntaxKind.BreakStatement) return;
  const to = JUMPS[file.text.slice(start, end)];
  if (to === undefined) return;
  let around = node.parent;
  while (!LOOPS.has(around.kind) && around.kind !== SyntaxKind.SwitchStatement) around = around.parent;
  return LOOPS.has(around.kind) ? { operator: 'jump', to, start, end, node } : undefined;
}

function more({ start, end }: Whole, file: SourceFile): string {
  const value = Number(file.text.slice(start, end).replaceAll('_', ''));
  return String(value < LARGE ? value + 1 : value * 2);
}

/** `{ once: true }`, which spares the removal of a listener: an AbortSignal fires once anyhow. */
function isOfOnce(node: Node): boolean {
  return (node.parent as { name?: Node }).name?.getText() === 'once';
}

/** The `1` of `{ 1: x }`. */
function isName(node: Node): boolean {
  return (node.parent as { name?: Node }).name === node;
}

/**
 * `a > b ? a : b`: which one it is makes no difference when both are the same. `a < b ? -1 : 1`: an order of things
 * that are never the same.
 */
function makesNoDifferenceAtEquality(comparison: BinaryExpression, file: SourceFile): boolean {
  const parent: Node = comparison.parent;
  if (!isConditionalExpression(parent) || parent.condition !== comparison) return false;
  const operands = sortedTexts([comparison.left, comparison.right], file);
  return isOrder(parent, file) || resultsOf(parent, file) === operands;
}

function resultsOf({ whenTrue, whenFalse }: ConditionalExpression, file: SourceFile): string {
  return sortedTexts([whenTrue, whenFalse], file);
}

function sortedTexts(nodes: readonly Node[], file: SourceFile): string {
  return nodes
    .map((node) => node.getText(file))
    .sort()
    .join();
}

/** `logger.info(…)`, `logger[level](…)`: nobody promises what a log says. */
function isLogCall(node: Node): boolean {
  if (!isCallExpression(node)) return false;
  const { expression: method } = node;
  if (!isPropertyAccessExpression(method) && !isElementAccessExpression(method)) return false;
  const target = method.expression;
  const name = isPropertyAccessExpression(target) ? target.name : target;
  return /^#?logger$/.test(name.getText());
}

function mutant(file: SourceFile, path: string, { operator, to, start, end, node }: Change): Mutant {
  const around = probeTarget(node);
  return {
    path,
    operator,
    line: file.getLineAndCharacterOfPosition(start).line + 1,
    start,
    end,
    from: file.text.slice(start, end),
    to,
    probe: {
      start: around.getStart(file),
      end: around.end,
      isStatement: operator === 'jump' || operator === 'return',
    },
  };
}

/** Outside of a chain `a?.b(c).d`, in which parentheses would change what an absent `a` ends. */
function probeTarget(node: Node): Node {
  let target = node;
  for (let { parent } = target; isChainLink(parent) && parent.expression === target; { parent } = target)
    target = parent;
  return target;
}

function isChainLink(node: Node): node is Node & { expression: Node } {
  return (
    isPropertyAccessExpression(node) ||
    isElementAccessExpression(node) ||
    isNonNullExpression(node) ||
    isCallExpression(node)
  );
}
