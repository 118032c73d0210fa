import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/metrics.ts';

async function linesOf(): Promise<string[]> {
  return (await createMetrics().registry.metrics()).split('\n').filter((line) => !line.startsWith('#'));
}

describe('a histogram', () => {
  it.each([
    [
      'rest_client_request_duration_seconds',
      { verb: 'GET' },
      [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    ],
    ['workqueue_queue_duration_seconds', { name: 'q' }, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60]],
    [
      'module_controller_module_operation_duration_seconds',
      { command: 'install' },
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
    ],
  ] as const)('%s has buckets that dashboards know', async (name, labels, buckets) => {
    const metrics = createMetrics();
    const histogram = metrics.registry.getSingleMetric(name) as typeof metrics.queueSeconds;
    histogram.observe(labels as never, 0.003);
    const { values } = await histogram.get();
    const bounds = values.map(({ labels: all }) => (all as { le?: unknown }).le);
    expect(bounds.filter((le) => typeof le === 'number')).toEqual(buckets);
  });
});

describe('a series with known labels', () => {
  it('starts at 0, so that its absence is visible', async () => {
    const lines = await linesOf();
    const labelled = lines.filter((line) => line.includes('{'));
    expect(labelled.length).toBeGreaterThan(25);
    expect(labelled.filter((line) => !line.endsWith(' 0'))).toEqual([]);
    for (const line of [
      'module_controller_pod_status_writes_total{result="error"} 0',
      'module_controller_node_status_writes_total{result="ok"} 0',
      'module_controller_node_lease_renew_total{result="error"} 0',
      'module_controller_membership_renewals_total{result="ok"} 0',
      'module_controller_member_requests_total{result="error"} 0',
      'module_controller_lease_claims_total{result="lost"} 0',
      'module_controller_skipped_lists_total{reason="room"} 0',
      'module_controller_member_messages_total{direction="dropped"} 0',
      'module_controller_pod_deletes_total{reason="BaseDead"} 0',
      'module_controller_module_operations_total{command="switch",result="timeout"} 0',
    ]) {
      expect(lines).toContain(line);
    }
  });
});
