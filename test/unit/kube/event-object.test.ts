import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutMessage, EventCorrelator, type EventSubject } from '../../../src/kube/events/event-correlator.ts';
import { buildEvent, eventNameOf } from '../../../src/kube/events/event-object.ts';

const POD: EventSubject = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'cart', uid: 'u1' };

describe('buildEvent', () => {
  const writing = {
    name: 'x.1',
    reportingInstance: 'controller-0',
    firstTime: new Date('2026-01-01T00:00:00.900Z'),
    lastTime: new Date('2026-01-01T00:01:00.100Z'),
  };
  const seriesOf = (subject: EventSubject) =>
    new EventCorrelator().correlate({ subject, type: 'Warning', reason: 'Failed', message: 'no' }, 0).series;

  it('describes an object of any kind, a cluster-scoped one in default', () => {
    const subject = {
      apiVersion: 'apps.koupleless.io/v1',
      kind: 'ModuleDeployment',
      namespace: 'shop',
      name: 'm',
      uid: 'u',
    };
    expect(buildEvent(seriesOf(subject), writing)).toMatchObject({
      metadata: { namespace: 'shop' },
      involvedObject: subject,
    });
    const cluster = buildEvent(seriesOf({ ...subject, namespace: '' }), writing);
    expect(cluster.metadata.namespace).toBe('default');
    expect(cluster.involvedObject).not.toHaveProperty('namespace');
  });

  it('describes a Pod in its namespace', () => {
    expect(buildEvent(seriesOf(POD), writing)).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'x.1', namespace: 'shop' },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'cart', uid: 'u1' },
      type: 'Warning',
      reason: 'Failed',
      message: 'no',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:01:00Z',
      source: { component: 'module-controller' },
      reportingComponent: 'module-controller',
      reportingInstance: 'controller-0',
    });
  });

  it('puts an event of a Node into default, without a namespace of the Node', () => {
    const event = buildEvent(seriesOf({ ...POD, kind: 'Node', namespace: '' }), writing);
    expect(event.metadata.namespace).toBe('default');
    expect(event.involvedObject).toEqual({ apiVersion: 'v1', kind: 'Node', name: 'cart', uid: 'u1' });
  });
});

describe('eventNameOf', () => {
  it('is a valid name for the longest object name', () => {
    const name = eventNameOf({ ...POD, name: `${'a'.repeat(235)}.${'b'.repeat(17)}` }, '0123456789abcdef');
    expect(name).toBe(`${'a'.repeat(235)}.0123456789abcdef`);
    expect(eventNameOf({ ...POD, name: 'a'.repeat(253) }, '0123456789abcdef')).toHaveLength(253);
    expect(eventNameOf(POD, '0123456789abcdef')).toBe('cart.0123456789abcdef');
  });
});

describe('cutMessage', () => {
  it('keeps a message of 1024 bytes, and cuts a longer one to that', () => {
    expect([1024, 1025].map((length) => cutMessage('a'.repeat(length)).length)).toEqual([1024, 1024]);
  });

  it('never exceeds 1024 bytes, never breaks a character, and cuts no more than it must', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'ä', '€', '𝄞'), minLength: 200, maxLength: 1500, size: 'max' }),
        (message) => {
          const cut = cutMessage(message);
          expect(message.startsWith(cut)).toBe(true);
          expect(cut).not.toContain('\ufffd');
          const bytes = Buffer.byteLength(cut);
          expect(bytes).toBeLessThanOrEqual(1024);
          if (cut !== message) expect(bytes).toBeGreaterThan(1020);
        },
      ),
    );
  });
});
