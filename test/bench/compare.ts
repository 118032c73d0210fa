import type { KeptCase, KeptFigure, KeptSeries } from './kept.ts';
import { withUnit } from './report.ts';
import type { Sizes } from './suite.ts';

/** Less is what two runs on one machine differ by. */
const NOTABLE = 0.1;

/** A line for each figure that moved since the result that was kept, where both were measured at the same sizes. */
export function changesSince(former: readonly KeptCase[], now: readonly KeptCase[]): string[] {
  const pairs = now.flatMap((current) => {
    const before = former.find(({ name }) => name === current.name);
    return before && isSameSize(before.sizes, current.sizes) ? [{ before, current }] : [];
  });
  const changes = pairs.flatMap(({ before, current }) => changesOf(before, current));
  const others = pairs.filter(({ before, current }) => before.machine !== current.machine);
  const machines = new Set(others.map(({ before }) => before.machine));
  // Where nothing moved it does not matter.
  const hint =
    changes.length === 0 ? [] : [...machines].map((machine) => `Kept with another machine or version: ${machine}`);
  return [...hint, ...changes];
}

function isSameSize(a: Sizes, b: Sizes): boolean {
  const isSameWorld =
    a.bases === b.bases &&
    a.modules === b.modules &&
    a.replicas === b.replicas &&
    a.services === b.services &&
    a.configs === b.configs;
  return isSameWorld && a.minutes === b.minutes && a.seconds === b.seconds && a.rate === b.rate;
}

function changesOf(before: KeptCase, { name, figures }: KeptCase): string[] {
  return figures.flatMap((figure) => {
    const former = before.figures.find(({ key }) => key === figure.key);
    return former && hasMoved(former, figure) ? [changeText(name, former, figure)] : [];
  });
}

function hasMoved({ median: before }: KeptSeries, { median: now }: KeptSeries): boolean {
  if (before === null || now === null) return before !== now;
  return Math.abs(now - before) > NOTABLE * Math.abs(before);
}

function changeText(caseName: string, before: KeptFigure, now: KeptFigure): string {
  const from = withUnit(before.median ?? undefined, now.unit);
  const to = withUnit(now.median ?? undefined, now.unit);
  // A floor that moved along says that it is the machine.
  const floor = before.floor && now.floor ? percentOf(before.floor, now.floor) : undefined;
  const parts = [percentOf(before, now), wordOf(before, now), ...(floor === undefined ? [] : [`floor ${floor}`])];
  return `CHANGED  ${caseName}  ${now.text}  ${from} → ${to} (${parts.filter(Boolean).join(', ')})`;
}

/** undefined: there is nothing to be a part of. */
function percentOf({ median: before }: KeptSeries, { median: now }: KeptSeries): string | undefined {
  if (before === null || now === null || before === 0) return undefined;
  const percent = Math.round(((now - before) / Math.abs(before)) * 100);
  return `${percent < 0 ? '' : '+'}${percent} %`;
}

/** Less is better, but where more is promised. */
function wordOf(before: KeptFigure, now: KeptFigure): string {
  if (now.median === null) return 'worse';
  if (before.median === null) return 'better';
  const isMore = now.median > before.median;
  return isMore === (now.atLeast !== undefined) ? 'better' : 'worse';
}
