import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../../src/metrics.ts';
import { grownGauges, sizeGaugesOf } from '../../bench/soak/gauges.ts';
import { metricOf } from '../../support/metric-text.ts';

const TEXT = `# HELP workqueue_depth Keys that wait in a queue.
# TYPE workqueue_depth gauge
workqueue_depth{name="pods"} 3
workqueue_depth{name="nodes"} 0
# TYPE workqueue_adds_total counter
workqueue_adds_total{name="pods"} 17
workqueue_adds_total{name="nodes"} 4
# TYPE module_controller_watch_last_event_age_seconds gauge
module_controller_watch_last_event_age_seconds{kind="Pod"} 1.5
# TYPE nodejs_heap_size_used_bytes gauge
nodejs_heap_size_used_bytes 1e7
# TYPE nodejs_active_handles_total gauge
nodejs_active_handles_total 21
`;

describe('gauges of a /metrics text', () => {
  it('are those that are sizes, by series', () => {
    expect(sizeGaugesOf(TEXT)).toEqual({
      'workqueue_depth{name="pods"}': 3,
      'workqueue_depth{name="nodes"}': 0,
      nodejs_active_handles_total: 21,
    });
  });

  it('and of the controller they are these: a new one is looked at, or left out on purpose', async () => {
    const metrics = createMetrics();
    metrics.informerObjects.set({ kind: 'Pod' }, 0);
    metrics.queueDepth.set({ name: 'pods' }, 0);
    metrics.vnodes.set({ state: 'Reachable' }, 0);
    expect(Object.keys(sizeGaugesOf(await metrics.registry.metrics())).sort()).toEqual([
      'module_controller_export_watches',
      'module_controller_exported_services',
      'module_controller_informer_objects{kind="Pod"}',
      'module_controller_leases_held',
      'module_controller_leases_known',
      'module_controller_members',
      'module_controller_preexisting_modules',
      'module_controller_unknown_modules',
      'module_controller_unproven_bases',
      'module_controller_vnodes{state="Reachable"}',
      'workqueue_depth{name="pods"}',
    ]);
  });

  it('are added up over their series', () => {
    expect(metricOf(TEXT, 'workqueue_adds_total')).toBe(21);
    expect(metricOf(TEXT, 'workqueue_adds_total', (labels) => /name="n/.test(labels))).toBe(4);
    expect(metricOf(TEXT, 'workqueue')).toBe(0);
  });

  it('have grown when they are more than a few larger, and more than a tenth', () => {
    expect(grownGauges({ a: 10, b: 1000, c: 0 }, { a: 14, b: 1100, c: 4 })).toEqual([]);
    expect(grownGauges({ a: 10, b: 1000 }, { a: 15, b: 1101, c: 5 })).toEqual([
      'a: 10 -> 15',
      'b: 1000 -> 1101',
      'c: 0 -> 5',
    ]);
    expect(grownGauges({ a: 10 }, {})).toEqual([]);
  });
});
