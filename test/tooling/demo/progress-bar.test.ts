import { describe, expect, it } from 'vitest';
import { progressBar } from '../../../samples/demo/progress-bar.ts';
import { changesBetween, renderTable } from '../../../samples/demo/table.ts';
import type { ModuleDeploymentView } from '../../../samples/demo/view.ts';
import { cluster, moduleDeployment, node } from './sample.ts';

const HALF: Partial<ModuleDeploymentView> = {
  updated: 2,
  revision: 2,
  reason: 'WaitingConfirm',
  batch: { current: 1, total: 2 },
};

describe('the progress bar', () => {
  it.each([
    [
      { revision: 0, replicas: 0, updated: 0, available: 0, reason: '' },
      'revision 0 ░░░░░░░░░░░░░░░░░░░░ 0 of 4 updated, 0 available',
    ],
    [
      { updated: 1, reason: 'PodsReplaced' },
      'revision 1 █████░░░░░░░░░░░░░░░ 1 of 4 updated, 4 available, PodsReplaced',
    ],
    [HALF, 'revision 2 ██████████░░░░░░░░░░ 2 of 4 updated, 4 available, batch 1 of 2, WaitingConfirm'],
    [{}, 'revision 1 ████████████████████ 4 of 4 updated, 4 available, RolloutComplete'],
    // While it is scaled down.
    [{ wanted: 2 }, 'revision 1 ████████████████████ 4 of 2 updated, 4 available, RolloutComplete'],
    [
      { wanted: 0, updated: 0, available: 0 },
      'revision 1 ████████████████████ 0 of 0 updated, 0 available, RolloutComplete',
    ],
  ])('shows %j', (part, text) => {
    expect(progressBar(moduleDeployment(part))).toBe(text);
  });

  it('is full only when every Pod is updated', () => {
    const bar = progressBar(moduleDeployment({ wanted: 1000, updated: 999 }));
    expect(bar).toContain('█░ 999 of 1000 updated');
  });

  it('stands above the table on a terminal, cut to its width', () => {
    const view = cluster({ nodes: [node(1)], moduleDeployments: [moduleDeployment(HALF)] });
    const [empty, bar, ...table] = renderTable(view, { width: 60, height: 50 });
    expect([empty, bar]).toEqual(['', 'orders revision 2 ██████████░░░░░░░░░░ 2 of 4 updated, 4 av…']);
    expect(table[1]).toMatch(/^NODE /);
  });

  it('is a line for each change elsewhere', () => {
    const before = cluster({ moduleDeployments: [moduleDeployment()] });
    const after = cluster({ moduleDeployments: [moduleDeployment(HALF)] });
    expect(changesBetween(before, after)).toEqual([`md orders: ${progressBar(moduleDeployment(HALF))}`]);
    expect(changesBetween(after, after)).toEqual([]);
    expect(changesBetween(after, cluster())).toEqual(['md orders: gone']);
  });
});
