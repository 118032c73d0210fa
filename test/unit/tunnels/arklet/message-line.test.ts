import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutToBytes, messageLineOf } from '../../../../tunnels/arklet/message-line.ts';

const TRACE = [
  'com.alipay.ArkletRuntimeException: start failed',
  '\tat com.alipay.A.b(A.java:1)',
  'Caused by: java.lang.IllegalStateException: web server',
  '\tat org.B.c(B.java:2)',
  'Caused by: java.lang.IllegalArgumentException: Child name [biz1] is not unique',
  '\t... 20 more',
].join('\n');

describe('messageLineOf', () => {
  it('shows no secret of a URL, also where it is cut', () => {
    const url = 'https://user:s3cret@repo.example/x.jar?X-Amz-Signature=s3cret';
    expect(messageLineOf('no', `failed: ${url}`)).toBe('failed: https://***@repo.example/x.jar?***');
    const signed = `${url}${'s3cret'.repeat(100)} `;
    for (let room = 0; room < 60; room++) {
      expect(messageLineOf('', `${'x'.repeat(room)} ${signed.repeat(40)}`)).not.toMatch(/s3c|Signature|user/);
      const text = `${'x'.repeat(1024 - room)} ${url} not found\nCaused by: a.B: ${'y'.repeat(512 - room)} ${url}`;
      expect(messageLineOf(text, '')).not.toMatch(/s3c|Signature|user/);
    }
  });

  it.each([
    ['bizUrl should not be blank', 'com.x.CommandValidationException: bizUrl\n\tat ...', 'bizUrl should not be blank'],
    ['uninstall biz not success!', 'Uninstall biz: a:1 not found.', 'Uninstall biz: a:1 not found.'],
    ['', 'Install Biz: a:1 success', 'Install Biz: a:1 success'],
    ['please follow the doc', '', 'please follow the doc'],
    ['install biz not success!', '', 'install biz not success!'],
    ['install biz not success!', 'x.Y: why\n\tat z', 'x.Y: why'],
    ['', '\n  first\r\nsecond', 'first'],
    ['', 'a\u0000\u001b[31mb', 'a [31mb'],
    ['', '', ''],
    ['no', '\nCaused by: a.B: why', 'no; caused by a.B: why'],
  ])('of %j and %j is %j', (outer, inner, line) => {
    expect(messageLineOf(outer, inner)).toBe(line);
  });

  it('leaves out the last word of a line of 16 KiB, which may be half a URL', () => {
    const lineOf = (length: number): string => {
      const [start, end] = ['failed: https://user:', '@repo.example/x.jar gone'];
      return start + 's'.repeat(length - start.length - end.length) + end;
    };
    expect(messageLineOf('', lineOf(16_383))).toBe('failed: *** gone');
    expect(messageLineOf('', lineOf(16_384))).toBe('failed: ***');
    expect(messageLineOf('', lineOf(16_385))).toBe('failed: ***');
    expect(messageLineOf('', `${'x '.repeat(9_000)}y`)).toMatch(/^x x .+…$/);
  });

  it('says that a line was cut that is longer than 1 KiB', () => {
    expect(messageLineOf('', 'x'.repeat(1_024))).toBe('x'.repeat(1_024));
    expect(messageLineOf('', 'x'.repeat(1_025))).toBe(`${'x'.repeat(1_021)}…`);
    expect(messageLineOf('', `a\nCaused by: ${'y'.repeat(513)}`)).toBe(`a; caused by ${'y'.repeat(509)}…`);
    expect(messageLineOf('', `a\nCaused by: ${'y'.repeat(512)}`)).toBe(`a; caused by ${'y'.repeat(512)}`);
  });

  it('adds the root cause of a stack trace, wherever the trace is', () => {
    const cause = 'java.lang.IllegalArgumentException: Child name [biz1] is not unique';
    expect(messageLineOf('no', TRACE)).toBe(`no; caused by ${cause}`);
    expect(messageLineOf('', TRACE)).toBe(`com.alipay.ArkletRuntimeException: start failed; caused by ${cause}`);
    expect(messageLineOf('no', '', TRACE)).toBe(`no; caused by ${cause}`);
    expect(messageLineOf(`x: ${cause}`, '', TRACE)).toBe(`x: ${cause}`);
  });

  it('keeps the root cause of a trace whose first line is too long', () => {
    const line = messageLineOf('', `${'é'.repeat(5_000)}\n\tat x\nCaused by: why`);
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(1024);
    expect(line).toMatch(/^é+…; caused by why$/);
  });

  it('is one well-formed line of at most 1 KiB, whatever the base says', () => {
    const piece = fc.constantFrom('\n', '\nCaused by: ', '\n\tat ', 'a', 'é', '😀', '\ud800', 'x'.repeat(600));
    const text = fc
      .array(fc.oneof(piece, fc.string({ unit: 'binary' })), { maxLength: 12 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, text, (outer, inner, trace) => {
        const line = messageLineOf(outer, inner, trace);
        expect(Buffer.byteLength(line)).toBeLessThanOrEqual(1024);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
        expect(line.isWellFormed()).toBe(true);
      }),
    );
  });

  it('takes no longer than it reads, for texts made to search long', () => {
    const inner = `${'a'.repeat(500_000)}\nCaused by: ${'a'.repeat(400_000)}b`;
    expect(Buffer.byteLength(messageLineOf('', inner))).toBeLessThanOrEqual(1024);
  });
});

describe('cutToBytes', () => {
  it('cuts between characters and says that it has cut', () => {
    expect(cutToBytes('abcd', 4)).toBe('abcd');
    expect(cutToBytes('abcde', 4)).toBe('a…');
    expect(cutToBytes('😀😀', 7)).toBe('😀…');
    expect(cutToBytes('😀😀', 6)).toBe('…');
    expect(cutToBytes('\ud800', 4)).toBe('\ufffd');
  });
});
