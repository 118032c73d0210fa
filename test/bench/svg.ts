/** As little of SVG as a picture of bars needs. */

/** No glyph of the usual fonts is wider on average, in parts of the size: what fits by it fits everywhere. */
export const CHARACTER_WIDTH = 0.6;

export interface TextStyle {
  readonly size: number;
  readonly fill: string;
  readonly isBold?: boolean;
}

export function text(x: number, y: number, words: string, { size, fill, isBold = false }: TextStyle): string {
  const weight = isBold ? ' font-weight="600"' : '';
  return `<text x="${short(x)}" y="${short(y)}" font-size="${size}" fill="${fill}"${weight}>${escaped(words)}</text>`;
}

export function widthOf(words: string, size: number): number {
  return words.length * size * CHARACTER_WIDTH;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function rect({ x, y, width, height }: Box, fill: string, more = ''): string {
  const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
  return `<rect ${place} fill="${fill}"${more && ` ${more}`}/>`;
}

export function dot(x: number, y: number, fill: string): string {
  return `<circle cx="${short(x)}" cy="${short(y)}" r="2" fill="${fill}" fill-opacity="0.7"/>`;
}

/** Diffs of a picture are to show what has changed, not the last digit. */
function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Lines no wider than `width`; a word that is wider is cut. */
export function wrapped(words: string, width: number, size: number): string[] {
  const most = Math.max(1, Math.floor(width / (size * CHARACTER_WIDTH)));
  const parts = words.split(' ').flatMap((word) => word.match(new RegExp(`.{1,${most}}`, 'gu')) ?? []);
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + part.length <= most) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(part);
  }
  return lines;
}

export function escaped(words: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return words.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}
