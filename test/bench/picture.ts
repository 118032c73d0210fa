import type { KeptCase, KeptSuite } from './kept.ts';
import { type Bar, type PictureRow, rowOf } from './picture-rows.ts';
import { sizesText } from './suite.ts';
import { dot, escaped, rect, type TextStyle, text, widthOf, wrapped } from './svg.ts';

const WIDTH = 1000;
const PAD = 24;
/** Names, bars and numbers stand in columns, each text wrapped in its own. */
const LABEL = { x: PAD, width: 300 };
const BARS = { x: 344, width: 300, limit: 200 };
const WORDS = { x: 664, width: WIDTH - PAD - 664 };
const LINE = 15;
const OWN_HEIGHT = 9;
const FLOOR_HEIGHT = 6;
/** Above and below the texts of a row. */
const ROW_GAP = 12;

const COLOR = {
  card: '#fdfdfb',
  border: '#d0d7de',
  track: '#eef1f4',
  ink: '#1f2933',
  faint: '#57636f',
  own: '#2f6fb5',
  missed: '#c2412d',
  floor: '#9aa4af',
  other: '#c79a2b',
} as const;
const BODY = { size: 12, fill: COLOR.ink } as const;
const SMALL = { size: 11, fill: COLOR.faint } as const;

/** Something drawn from some height on, and how high it is. */
interface Drawn {
  readonly parts: readonly string[];
  readonly height: number;
}

/** All figures that have a promise, each scaled to it: the limits are one line. */
export function pictureOf(kept: KeptSuite): string {
  const groups = kept.cases.map((of) => ({ of, rows: rowsOf(of) })).filter(({ rows }) => rows.length > 0);
  const newest = kept.cases.toSorted((a, b) => (a.at < b.at ? 1 : -1))[0];
  const title = `${kept.suite}: ${kept.text}`;
  const hasFloor = groups.some(({ rows }) => rows.some(({ floor }) => floor));
  const hasOther = groups.some(({ rows }) => rows.some(({ others }) => others.length > 0));
  const draw: ((y: number) => Drawn)[] = [
    (y) => paragraph(y, { ...BODY, size: 18, isBold: true }, title),
    (y) => paragraph(y, SMALL, newest ? `${dayOf(newest)}, ${newest.machine}` : 'nothing was measured yet'),
    ...(kept.notes ?? []).map((note) => (y: number) => paragraph(y, SMALL, note)),
    (y) => legend(y, kept.subjects, { hasFloor, hasOther }),
    ...groups.flatMap(({ of, rows }) => [
      (y: number) => groupHead(y, of, newest),
      ...rows.map((row) => (y: number) => rowAt(y, row)),
    ]),
  ];
  let y = PAD;
  const parts = draw.flatMap((one) => {
    const drawn = one(y);
    y += drawn.height;
    return drawn.parts;
  });
  const height = y + PAD;
  const fonts = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
  const size = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="${fonts}">`,
    `<title>${escaped(title)}</title>`,
    rect({ x: 0.5, y: 0.5, width: WIDTH - 1, height: height - 1 }, COLOR.card, `rx="8" stroke="${COLOR.border}"`),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** Of a case that promises nothing the first figure that is compared: that is what it is about. */
function rowsOf({ figures }: KeptCase): PictureRow[] {
  const rows = figures.map(rowOf).filter((row) => row !== undefined);
  const promised = rows.filter(({ isPromised }) => isPromised);
  return promised.length > 0 ? promised : rows.slice(0, 1);
}

function dayOf({ at }: KeptCase): string {
  return at.slice(0, 10);
}

/** Over the whole width. */
function paragraph(y: number, style: TextStyle, words: string): Drawn {
  const step = Math.round(style.size * 1.4);
  const lines = wrapped(words, WIDTH - 2 * PAD, style.size);
  return {
    parts: lines.map((line, index) => text(PAD, y + step * index + style.size, line, style)),
    height: step * lines.length,
  };
}

function legend(
  y: number,
  [own = '', floor = 'floor', other = 'other']: readonly string[],
  { hasFloor, hasOther }: { hasFloor: boolean; hasOther: boolean },
): Drawn {
  const middle = y + 18;
  const bar = (color: string, height: number) => (x: number) =>
    rect({ x, y: middle - height / 2, width: 18, height }, color);
  const entries: { words: string; draw: (x: number) => string }[] = [
    { words: `${own || 'measured'}, median`, draw: bar(COLOR.own, OWN_HEIGHT) },
    { words: 'the same, promise missed', draw: bar(COLOR.missed, OWN_HEIGHT) },
    ...(hasFloor ? [{ words: `${floor}, median`, draw: bar(COLOR.floor, FLOOR_HEIGHT) }] : []),
    ...(hasOther ? [{ words: `${other}, median`, draw: bar(COLOR.other, FLOOR_HEIGHT) }] : []),
    { words: 'one run', draw: (x) => dot(x + 9, middle, COLOR.ink) },
    { words: 'promised: left of it is kept', draw: (x) => limitLine(x + 9, middle - 8, 16) },
  ];
  let x = PAD;
  const parts = entries.flatMap(({ words, draw }) => {
    const at = x;
    x += 24 + widthOf(words, SMALL.size) + 18;
    return [draw(at), text(at + 24, middle + 4, words, SMALL)];
  });
  return { parts, height: 34 };
}

/** How it was measured; the machine only where it is not the one above. */
function groupHead(y: number, of: KeptCase, newest: KeptCase | undefined): Drawn {
  const where = of.machine === newest?.machine ? '' : `, ${of.machine}`;
  const name = paragraph(y + 12, { ...BODY, size: 14, isBold: true }, of.name);
  const how = `${sizesText(of.sizes)}, runs: ${of.runs}, ${dayOf(of)}${where}`;
  const below = paragraph(y + 12 + name.height, SMALL, how);
  return { parts: [...name.parts, ...below.parts], height: 12 + name.height + below.height + 4 };
}

function rowAt(y: number, row: PictureRow): Drawn {
  const label = wrapped(row.label, LABEL.width, BODY.size);
  const [own = '', ...others] = row.words;
  const words = [
    ...wrapped(own, WORDS.width, BODY.size).map((line) => ({ line, fill: row.isMissed ? COLOR.missed : COLOR.ink })),
    ...others.flatMap((one) => wrapped(one, WORDS.width, BODY.size)).map((line) => ({ line, fill: COLOR.faint })),
  ];
  const beside = [
    ...(row.floor ? [{ bar: row.floor, fill: COLOR.floor }] : []),
    ...row.others.map((bar) => ({ bar, fill: COLOR.other })),
  ];
  const height = Math.max(label.length, words.length, 1) * LINE + ROW_GAP;
  const top = y + ROW_GAP / 2;
  const baseline = (index: number): number => top + index * LINE + BODY.size;
  const barY = top + 2;
  return {
    parts: [
      ...label.map((line, index) => text(LABEL.x, baseline(index), line, BODY)),
      rect({ x: BARS.x, y: barY, width: BARS.width, height: OWN_HEIGHT }, COLOR.track),
      ...barAt(barY, row.own, { height: OWN_HEIGHT, fill: row.isMissed ? COLOR.missed : COLOR.own }),
      ...beside.flatMap(({ bar, fill }, index) =>
        barAt(barY + OWN_HEIGHT + 2 + index * (FLOOR_HEIGHT + 2), bar, { height: FLOOR_HEIGHT, fill }),
      ),
      ...(row.isPromised ? [limitLine(BARS.x + BARS.limit, y, height)] : []),
      ...words.map(({ line, fill }, index) => text(WORDS.x, baseline(index), line, { ...BODY, fill })),
    ],
    height,
  };
}

/** What is longer than the column ends in a point: it goes on. */
function barAt(y: number, { median, values }: Bar, { height, fill }: { height: number; fill: string }): string[] {
  if (median === undefined) return [];
  const wanted = median * BARS.limit;
  const width = Math.min(BARS.width, wanted);
  const [end, middle] = [BARS.x + BARS.width, y + height / 2];
  const point = `<path d="M${end} ${y - 1}l7 ${height / 2 + 1}l-7 ${height / 2 + 1}z" fill="${fill}"/>`;
  return [
    rect({ x: BARS.x, y, width, height }, fill),
    ...(wanted > BARS.width ? [point] : []),
    ...values.map((value) => dot(BARS.x + Math.min(BARS.width, value * BARS.limit), middle, COLOR.ink)),
  ];
}

function limitLine(x: number, y: number, height: number): string {
  return rect({ x: x - 0.75, y, width: 1.5, height }, COLOR.ink);
}
