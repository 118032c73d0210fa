import { describe, expect, it } from 'vitest';
import { changesBetween, cut, renderTable } from '../../../samples/demo/table.ts';
import { cluster, node, pod } from './sample.ts';

const WIDE = { width: 120, height: 50 };
const two = cluster({
  nodes: [node(2, { tunnel: 'HTTP' }), node(1)],
  pods: [pod(2, { status: 'Pending', isReady: false, readyText: '0/1', node: '', ip: '' }), pod(1)],
});

describe('the table', () => {
  it('shows Nodes with their modules, and vPods, by name', () => {
    expect(renderTable(two, WIDE)).toEqual([
      '',
      'NODE          STATUS  TUNNEL  IP            MODULES',
      'vnode.base-1  Ready   MQTT    198.51.100.1  shop:1.0.0',
      'vnode.base-2  Ready   HTTP    198.51.100.2',
      '',
      'POD     MODULE      READY  STATUS   NODE          IP',
      'shop-1  shop:1.0.0  1/1    Running  vnode.base-1  198.51.100.1',
      'shop-2  shop:1.0.0  0/1    Pending  <none>        <none>',
    ]);
  });

  it('is empty as long as there is nothing', () => {
    expect(renderTable(cluster({ nodes: [] }), WIDE)).toEqual([]);
  });

  it('leaves the less important columns out on a narrow terminal', () => {
    expect(renderTable(two, { ...WIDE, width: 36 })).toEqual([
      '',
      'NODE          STATUS  MODULES',
      'vnode.base-1  Ready   shop:1.0.0',
      'vnode.base-2  Ready',
      '',
      'POD     MODULE      READY  STATUS',
      'shop-1  shop:1.0.0  1/1    Running',
      'shop-2  shop:1.0.0  0/1    Pending',
    ]);
  });

  it.each([0, 1, 5, 20, 40, 79])('has no line longer than %i', (width) => {
    for (const line of renderTable(two, { ...WIDE, width })) expect(line.length).toBeLessThanOrEqual(width);
  });

  it('has no more lines than the terminal, and says how many are missing', () => {
    const lines = renderTable(two, { ...WIDE, height: 4 });
    expect(lines).toHaveLength(4);
    expect(lines.at(-1)).toBe('… 5 lines more');
  });
});

describe('changes as plain lines', () => {
  it('tell what came, what is different and what is gone', () => {
    const before = cluster({ nodes: [node(1)], pods: [pod(1), pod(2)] });
    const after = cluster({
      nodes: [node(1), node(2)],
      pods: [pod(2, { status: 'ErrImagePull', readyText: '0/1', ip: '' })],
    });
    expect(changesBetween(before, after)).toEqual([
      'node vnode.base-2: Ready MQTT 198.51.100.2',
      'pod shop-2: shop:1.0.0 ErrImagePull 0/1 on vnode.base-2',
      'pod shop-1: gone',
    ]);
  });

  it('are none when nothing that is shown has changed', () => {
    expect(changesBetween(two, { ...two, deployments: [] })).toEqual([]);
  });
});

it('a cut line ends in an ellipsis', () => {
  expect([cut('abcdef', 6), cut('abcdef', 4), cut('abcdef', 0)]).toEqual(['abcdef', 'abc…', '']);
});
