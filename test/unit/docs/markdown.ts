/** Just enough Markdown to hold a README to the code. */

export type Row = Readonly<Record<string, string>>;

/** The text from a heading to the next one of its level or above. Throws where there is no such heading. */
export function sectionOf(markdown: string, heading: string): string {
  const lines = withoutFences(markdown).split('\n');
  const start = lines.findIndex((line) => levelOf(line) > 0 && titleOf(line) === heading);
  if (start < 0) throw new Error(`README has no heading "${heading}"`);
  const level = levelOf(lines[start] ?? '');
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => levelOf(line) > 0 && levelOf(line) <= level);
  return rest.slice(0, end < 0 ? undefined : end).join('\n');
}

/** The first table of a section, each row by the titles of its columns. */
export function tableOf(section: string): Row[] {
  return tablesOf(section)[0] ?? [];
}

/** All tables of a text, likewise. */
export function tablesOf(text: string): Row[][] {
  const tables = withoutFences(text).match(/(?:^\|.*(?:\n|$))+/gm) ?? [];
  return tables.map((table) => {
    const [titles = [], , ...rows] = table.trimEnd().split('\n').map(cellsOf);
    return rows.map((cells) => {
      if (cells.length !== titles.length) throw new Error(`a row has ${cells.length} cells: ${cells.join(' | ')}`);
      return Object.fromEntries(titles.map((title, index) => [title, cells[index] ?? '']));
    });
  });
}

/** What stands in backticks. */
export function codesOf(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code ?? '');
}

/** Targets of links and pictures. */
export function linksOf(markdown: string): string[] {
  return [...withoutFences(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');
}

/** As GitHub makes them. */
export function anchorsOf(markdown: string): string[] {
  return withoutFences(markdown)
    .split('\n')
    .filter((line) => levelOf(line) > 0)
    .map((line) =>
      titleOf(line)
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    );
}

function levelOf(line: string): number {
  return /^(#{1,6}) /.exec(line)?.[1]?.length ?? 0;
}

function titleOf(line: string): string {
  return line.replace(/^#+ /, '').trim();
}

function cellsOf(line: string): string[] {
  const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
  return cells.slice(1, -1);
}

function withoutFences(markdown: string): string {
  return markdown.replace(/^```[\s\S]*?^```$/gm, '');
}
