import type { KeptCase, KeptFigure, KeptSuite } from '../../bench/kept.ts';

export function keptFigure(key: string, median: number | null, parts: Partial<KeptFigure> = {}): KeptFigure {
  return { key, text: `text of ${key}`, unit: 's', values: [median], median, ...parts };
}

export function keptCase(name: string, figures: readonly KeptFigure[], parts: Partial<KeptCase> = {}): KeptCase {
  const how = { at: '2026-01-02T03:04:05.000Z', machine: '2 cores', runs: 3, sizes: { bases: 100 } };
  return { name, figures, ...how, ...parts };
}

export function keptSuite(cases: readonly KeptCase[], parts: Partial<KeptSuite> = {}): KeptSuite {
  return { suite: 'scale', text: 'what one replica carries', subjects: ['controller', 'floor'], cases, ...parts };
}
