import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/logger.ts';

function lineOf(fields: object, bindings: Record<string, unknown> = {}): string {
  const lines: string[] = [];
  createLogger('info', { write: (line: string) => void lines.push(line) })
    .child(bindings)
    .info(fields, 'said');
  return lines.join('');
}

describe('a log line', () => {
  it.each([
    { broker: { password: 'SECRET' } },
    { token: 'SECRET' },
    { consumers: [{ tokens: ['SECRET'] }] },
    { headers: { Authorization: 'SECRET' } },
    { err: Object.assign(new Error('failed'), { request: { headers: { authorization: 'SECRET' } } }) },
  ])('has no value of a field that is named like a credential: %j', (fields) => {
    const line = lineOf(fields);
    expect(line).not.toContain('SECRET');
    expect(line).toContain('[Redacted]');
    expect(line).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(line)).toMatchObject({ level: 'info', msg: 'said' });
  });

  it('has none in what a child logger always says', () => {
    expect(lineOf({}, { peer: { token: 'SECRET' } })).not.toContain('SECRET');
  });

  it('stays as it is where the words only stand in a text, or in another name', () => {
    const fields = { tokenCount: 3, reason: 'the "token": is missing', audience: 'password' };
    expect(JSON.parse(lineOf(fields))).toMatchObject(fields);
  });
});
