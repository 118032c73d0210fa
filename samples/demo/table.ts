import { progressBar } from './progress-bar.ts';
import type { ClusterView, NodeView, PodView } from './view.ts';

interface Column<T> {
  readonly title: string;
  readonly textOf: (row: T) => string;
  /** The highest goes first when the terminal is narrow; the first column always stays. */
  readonly dropOrder: number;
}

const GAP = '  ';

const POD_COLUMNS: readonly Column<PodView>[] = [
  { title: 'POD', textOf: (pod) => pod.name, dropOrder: 0 },
  { title: 'MODULE', textOf: (pod) => pod.modules.join(' '), dropOrder: 2 },
  { title: 'READY', textOf: (pod) => pod.readyText, dropOrder: 3 },
  { title: 'STATUS', textOf: (pod) => pod.status, dropOrder: 1 },
  { title: 'NODE', textOf: (pod) => pod.node || '<none>', dropOrder: 4 },
  { title: 'IP', textOf: (pod) => pod.ip || '<none>', dropOrder: 5 },
];

/** ModuleDeployments with their progress, Nodes and vPods as lines, none longer than `width`, at most `height` of them. */
export function renderTable(view: ClusterView, { width, height }: { width: number; height: number }): string[] {
  const modulesOn = (node: NodeView): string =>
    view.pods
      .filter((pod) => pod.node === node.name)
      .flatMap((pod) => pod.modules)
      .join(' ');
  const nodeColumns: readonly Column<NodeView>[] = [
    { title: 'NODE', textOf: (node) => node.name, dropOrder: 0 },
    { title: 'STATUS', textOf: (node) => node.status, dropOrder: 1 },
    { title: 'TUNNEL', textOf: (node) => node.tunnel, dropOrder: 3 },
    { title: 'IP', textOf: (node) => node.ip, dropOrder: 4 },
    { title: 'MODULES', textOf: modulesOn, dropOrder: 2 },
  ];
  const rollouts = [...view.moduleDeployments]
    .sort(byName)
    .map((entry) => cut(`${entry.name} ${progressBar(entry)}`, width));
  const nodes = section(nodeColumns, [...view.nodes].sort(byName), width);
  const pods = section(POD_COLUMNS, [...view.pods].sort(byName), width);
  return shorten([...(rollouts.length > 0 ? ['', ...rollouts] : []), ...nodes, ...pods], { width, height });
}

/** Below an empty line; nothing at all where there are no rows. */
function section<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): string[] {
  return rows.length === 0 ? [] : ['', ...layout(columns, rows, width)];
}

/** Rows below their titles; columns fall out until the lines fit, what is left is cut. */
export function layout<T>(columns: readonly Column<T>[], rows: readonly T[], width: number): string[] {
  let kept = columns;
  const cells = () => kept.map((column) => [column.title, ...rows.map((row) => column.textOf(row))]);
  const widths = () => cells().map((texts) => Math.max(...texts.map((text) => text.length)));
  const total = () => widths().reduce((sum, size) => sum + size, GAP.length * (kept.length - 1));
  while (kept.length > 1 && total() > width) {
    const last = Math.max(...kept.map((column) => column.dropOrder));
    kept = kept.filter((column) => column.dropOrder !== last);
  }
  const sizes = widths();
  const texts = cells();
  return [undefined, ...rows].map((_, row) => {
    const line = texts.map((column, index) => (column[row] ?? '').padEnd(sizes[index] ?? 0)).join(GAP);
    return cut(line.trimEnd(), width);
  });
}

/** At most `width` characters; an ellipsis stands for the rest. */
export function cut(line: string, width: number): string {
  if (line.length <= width) return line;
  return width < 1 ? '' : `${line.slice(0, width - 1)}…`;
}

function shorten(lines: readonly string[], { width, height }: { width: number; height: number }): string[] {
  if (lines.length <= height) return [...lines];
  if (height < 1) return [];
  const kept = lines.slice(0, height - 1);
  return [...kept, cut(`… ${lines.length - kept.length} lines more`, width)];
}

/** What is different, a line each: the table where no line can be drawn again. */
export function changesBetween(before: ClusterView, after: ClusterView): string[] {
  return [
    ...differences(before.nodes, after.nodes, (node) => `node ${node.name}`, nodeText),
    ...differences(before.pods, after.pods, (pod) => `pod ${pod.name}`, podText),
    ...differences(before.moduleDeployments, after.moduleDeployments, (entry) => `md ${entry.name}`, progressBar),
  ];
}

function differences<T>(
  before: readonly T[],
  after: readonly T[],
  nameOf: (row: T) => string,
  textOf: (row: T) => string,
): string[] {
  const old = new Map(before.map((row) => [nameOf(row), textOf(row)]));
  const now = new Set(after.map(nameOf));
  return [
    ...after.filter((row) => old.get(nameOf(row)) !== textOf(row)).map((row) => `${nameOf(row)}: ${textOf(row)}`),
    ...[...old.keys()].filter((name) => !now.has(name)).map((name) => `${name}: gone`),
  ];
}

function nodeText(node: NodeView): string {
  return [node.status, node.tunnel, node.ip].filter((part) => part !== '').join(' ');
}

function podText({ modules, status, readyText, node, ip }: PodView): string {
  return [modules.join(' '), status, readyText, ...(node ? [`on ${node}`] : []), ip].join(' ').trimEnd();
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
