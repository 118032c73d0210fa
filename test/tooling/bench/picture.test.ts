import { describe, expect, it } from 'vitest';
import type { KeptFigure } from '../../bench/kept.ts';
import { pictureOf } from '../../bench/picture.ts';
import { rowOf } from '../../bench/picture-rows.ts';
import { wrapped } from '../../bench/svg.ts';
import { keptCase, keptFigure, keptSuite } from './kept-figures.ts';
import { elementsOf } from './svg-elements.ts';

interface Place {
  readonly words: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** In a wide font: more than most have. */
function placesOf(xml: string): Place[] {
  return elementsOf(xml)
    .filter(({ name }) => name === 'text')
    .map(({ attributes, text }) => {
      const [x, y, size] = [Number(attributes.x), Number(attributes.y), Number(attributes['font-size'])];
      const words = text.replace(/&\w+;/g, '?');
      return { words, left: x, right: x + words.length * size * 0.58, top: y - size * 0.8, bottom: y + size * 0.2 };
    });
}

function overlapsOf(places: readonly Place[]): string[] {
  return places.flatMap((a, index) =>
    places
      .slice(index + 1)
      .filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
      .map((b) => `${a.words} / ${b.words}`),
  );
}

function series(...values: number[]) {
  return { values, median: values[1] ?? values[0] ?? 0 };
}

const LONG = 'from the moment at which the very last of all Deployments was asked for until its Pods are Ready';

function longFigure(_: unknown, index: number): KeptFigure {
  const parts: Partial<KeptFigure>[] = [
    { atMost: 10, floor: series(2, 3, 4), ratio: series(2, 2.5, 3), timesFloorAtMost: 4.25, isKept: true },
    { atMost: 3, unit: 'requests for each VNode and minute', isKept: false },
    { floor: series(1, 2, 3), ratio: series(3, 2.5, 2) },
    { atLeast: 1000, isKept: false, text: 'x'.repeat(120) },
  ];
  return keptFigure(`figure${index}`, 5, { text: LONG, ...series(4, 5, 6), ...parts[index % parts.length] });
}

describe('the picture', () => {
  const long = keptSuite(
    ['rollout', 'a case whose name is longer than any name that there is', 'restart'].map((name) =>
      keptCase(name, Array.from({ length: 12 }, longFigure), { machine: `2 cores, ${LONG}, ${name}` }),
    ),
  );

  it('is well-formed, whatever is in a name', () => {
    const evil = keptCase('<case> & "more"', [keptFigure('a', 1, { text: 'a < b & "c" > d', atMost: 2 })]);
    const texts = elementsOf(pictureOf(keptSuite([evil], { text: 'R&D <now>' }))).map(({ text }) => text);
    expect(texts).toContain('a &lt; b &amp; &quot;c&quot; &gt; d');
    expect(() => elementsOf(pictureOf(long))).not.toThrow();
    expect(() => elementsOf(pictureOf(long).replace('</text>', ''))).toThrow();
    expect(() => elementsOf(pictureOf(keptSuite([])))).not.toThrow();
  });

  it('needs nothing from elsewhere and runs nothing', () => {
    const names = new Set(elementsOf(pictureOf(long)).map(({ name }) => name));
    expect([...names].sort()).toEqual(['circle', 'path', 'rect', 'svg', 'text', 'title']);
    expect(pictureOf(long).replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|url\(|@import/);
  });

  it('has a row for each figure that is promised, with its numbers', () => {
    const figures = [
      keptFigure('promised', 4, { atMost: 5, isKept: true }),
      keptFigure('missed', 7, { timesFloorAtMost: 3, floor: series(2), ratio: series(3.5), isKept: false }),
      keptFigure('compared', 6, { floor: series(4), ratio: series(1.5) }),
      keptFigure('read', 8),
    ];
    const words = placesOf(pictureOf(keptSuite([keptCase('rollout', figures)]))).map((place) => place.words);
    expect(words.filter((text) => text.startsWith('text of'))).toEqual(['text of promised', 'text of missed']);
    expect(words).toEqual(expect.arrayContaining(['rollout', '100 bases, runs: 3, 2026-01-02']));
    expect(words).toEqual(expect.arrayContaining(['4 s · promised ≤ 5 · kept', 'floor 2 s · ratio 3.5']));
    expect(words).toEqual(expect.arrayContaining(['7 s · promised ≤ 3 × floor · MISSED']));
  });

  it('shows of a case without a promise the first figure that is compared', () => {
    const compared = { floor: series(4), ratio: series(1.5) };
    const figures = [keptFigure('read', 8), keptFigure('time', 6, compared), keptFigure('CPU', 6, compared)];
    const words = placesOf(pictureOf(keptSuite([keptCase('roll', figures)]))).map((place) => place.words);
    expect(words.filter((text) => text.startsWith('text of'))).toEqual(['text of time']);
    expect(words).toEqual(expect.arrayContaining(['6 s', 'floor 4 s · ratio 1.5']));
  });

  it('shows a peer beside the floor, and what a reader has to know', () => {
    const figure = keptFigure('time', 6, {
      timesFloorAtMost: 2,
      floor: series(4),
      ratio: series(1.5),
      others: { kwok: series(7) },
      isKept: true,
    });
    const suite = { subjects: ['controller', 'floor', 'kwok'], notes: ['kwok installs nothing'] };
    const picture = pictureOf(keptSuite([keptCase('announce', [figure])], suite));
    const words = placesOf(picture).map((place) => place.words);
    expect(words).toEqual(expect.arrayContaining(['kwok, median', 'kwok installs nothing', 'kwok 7 s']));
    expect(rowOf(figure)).toMatchObject({ own: { median: 0.75 }, floor: { median: 0.5 } });
    expect(rowOf(figure)?.others).toEqual([{ median: 7 / 4 / 2, values: [7 / 4 / 2] }]);
    expect(overlapsOf(placesOf(picture))).toEqual([]);
  });

  it('says of each case how it was measured, and where if that was elsewhere', () => {
    const sizes = { bases: 1, modules: 5, replicas: 1 };
    const figures = [keptFigure('a', 1, { atMost: 2 })];
    const older = keptCase('older', figures, { at: '2025-12-31T00:00:00.000Z', machine: '64 cores', sizes });
    const words = placesOf(pictureOf(keptSuite([older, keptCase('newer', figures)]))).map((place) => place.words);
    expect(words).toContain('2026-01-02, 2 cores');
    expect(words).toContain('100 bases, runs: 3, 2026-01-02');
    expect(words).toContain('1 base, 5 modules on each, 1 replica, runs: 3, 2025-12-31, 64 cores');
  });

  it('has no text upon another one, nor beside the card, however long and many they are', () => {
    const picture = pictureOf(long);
    const places = placesOf(picture);
    const [svg] = elementsOf(picture);
    expect(places.filter(({ words }) => words.startsWith('from the moment at which'))).toHaveLength(18);
    expect(overlapsOf(places)).toEqual([]);
    expect(places.filter(({ right }) => right > Number(svg?.attributes.width))).toEqual([]);
    expect(places.filter(({ bottom }) => bottom > Number(svg?.attributes.height))).toEqual([]);
  });

  it('draws each limit at the same place, and a dot for each run', () => {
    const figures = [5, 500].map((atMost, index) => keptFigure(`f${index}`, 4, { ...series(3, 4, 5), atMost }));
    const elements = elementsOf(pictureOf(keptSuite([keptCase('rollout', figures)], { subjects: [''] })));
    const limits = elements
      .filter(({ attributes }) => attributes.width === '1.5')
      .map(({ attributes }) => attributes.x);
    // One more is that of the legend, as is one dot.
    expect(limits).toHaveLength(3);
    expect(limits[1]).toBe(limits[2]);
    expect(elements.filter(({ name }) => name === 'circle')).toHaveLength(7);
  });

  it('has only numbers for places, also where nothing or no number was measured', () => {
    const figures = [
      keptFigure('none', null, { values: [], atMost: 1 }),
      keptFigure('no number', null, { values: [null, 1], atMost: 1, isKept: false }),
      keptFigure('free', 0, { atMost: 0, isKept: true }),
      keptFigure('no floor', 1, { timesFloorAtMost: 2 }),
      keptFigure('floor of nothing', 1, { timesFloorAtMost: 2, floor: series(0), isKept: false }),
    ];
    const compared = [keptFigure('nothing', 0, { floor: series(0), ratio: series(1) })];
    const picture = pictureOf(keptSuite([keptCase('odd', figures), keptCase('compared', compared)]));
    expect(picture).not.toMatch(/NaN|Infinity|undefined|null|="-/);
    expect(placesOf(picture).filter(({ words }) => words.startsWith('text of'))).toHaveLength(figures.length + 1);
  });
});

describe('a row', () => {
  it('is scaled to its promise: 1 is the limit, whether more or less is promised', () => {
    expect(rowOf(keptFigure('a', 4, { ...series(2, 4, 6), atMost: 8 }))?.own).toEqual({
      median: 0.5,
      values: [0.25, 0.5, 0.75],
    });
    expect(rowOf(keptFigure('a', 4, { atLeast: 8 }))?.own.median).toBe(2);
    expect(rowOf(keptFigure('a', 3, { atMost: 0 }))?.own.median).toBe(Infinity);
    expect(rowOf(keptFigure('a', 0, { atMost: 0 }))?.own.median).toBe(0);
  });

  it('shows the promise that is nearest to its limit', () => {
    const figure = { atMost: 100, timesFloorAtMost: 4, floor: series(10), ratio: series(3) };
    expect(rowOf(keptFigure('a', 30, figure))).toMatchObject({ own: { median: 0.75 }, floor: { median: 0.25 } });
    const near = { ...figure, atMost: 32 };
    expect(rowOf(keptFigure('a', 30, near))).toMatchObject({ own: { median: 30 / 32 }, floor: { median: 10 / 32 } });
  });

  it('ends before the place of the limit when nothing is promised', () => {
    const row = rowOf(keptFigure('a', 30, { ...series(20, 30, 40), floor: series(10), ratio: series(3) }));
    expect(row).toMatchObject({ isPromised: false, own: { values: [0.375, 0.5625, 0.75] }, floor: { median: 0.1875 } });
  });

  it('is not there for a figure that is only to be read', () => {
    expect(rowOf(keptFigure('a', 1))).toBeUndefined();
  });
});

describe('lines', () => {
  it('are no longer than there is room for', () => {
    expect(wrapped('some words and more', 60, 10)).toEqual(['some words', 'and more']);
    expect(wrapped('a wordthatislong', 36, 10)).toEqual(['a', 'wordth', 'atislo', 'ng']);
  });
});
