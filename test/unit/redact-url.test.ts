import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/logger.ts';
import { imageIdOf, redactUrl, redactUrls, storedImageIdOf } from '../../src/redact-url.ts';

const SIGNED = 'https://repo.example:8443/a/x.jar?X-Amz-Signature=s3cret&X-Amz-Date=1';

describe('a text', () => {
  it.each([
    ['failed: https://user:s3cret@repo/x.jar', 'failed: https://***@repo/x.jar'],
    [`code 403 for URL: ${SIGNED}, tried again`, 'code 403 for URL: https://repo.example:8443/a/x.jar?*** tried again'],
    ['https://s3cret@repo/x.jar?a#b', 'https://***@repo/x.jar?***'],
    // As java.io.File prints a URL, and as the agent names its copy of the jar.
    ['https:/user:s3cret@repo/x.jar?sig=s3cret (No such file)', 'https:/***@repo/x.jar?*** (No such file)'],
    ['no file x.jar?sig=s3cret here', 'no file x.jar?*** here'],
    // A query with a second question mark, after what looks like another jar or URL.
    ['https://h/x?sig=s3cret.jar?y', 'https://h/x?***'],
    ['x.jar?sig=s3cret&from=http://h/y?z', 'x.jar?***'],
    // Several in one word.
    ['file:/a.jar:https://u:s3cret@h/x.jar', 'file:/a.jar:https://***@h/x.jar'],
    ['jar:https://u:s3cret@h/x.jar!/A.class', 'jar:https://***@h/x.jar!/A.class'],
    ['[https://a:s3cret@h/,https://b:s3cret@h/]', '[https://***@h/,https://***@h/]'],
    // A password with characters that end an authority, and a URL that was cut.
    ['https://user:s3c/ret@repo/x.jar', 'https://***@repo/x.jar'],
    ['https://us:er@s3cret@repo/x.jar', 'https://***@repo/x.jar'],
    ['at https://user:s3cre', 'at https://***'],
    // What follows an empty userinfo is a host, whatever the path has.
    ['https://@repo/@scope/x.jar', 'https://***@repo/@scope/x.jar'],
  ])('shows no secret of a URL: %s', (text, expected) => {
    expect(redactUrls(text)).toBe(expected);
  });

  it.each([
    'nothing',
    'is it ready? yes: a/b',
    'https://repo.example:8443/a/x-1.0.0.jar',
    'see https://repo.example/x.jar).',
    "'http://[2001:db8::1]:1238/installBiz'",
    'file:///tmp/x@y.jar at C:/a and (file:///work/src/a.ts:1:2)',
    'https://repo/@scope/x.jar#part',
  ])('without one stays as it is: %s', (text) => {
    expect(redactUrls(text)).toBe(text);
  });

  it('keeps nothing of userinfo and query, and is redacted once for all', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9!$&'()*+,;=:._~%-]{0,20}$/).map((text) => `${text}SECRET${text}`);
    const around = fc.stringMatching(/^[a-z0-9 '"<>:/.,?@{}-]{0,20}$/);
    fc.assert(
      fc.property(secret, secret, around, around, (userinfo, query, before, after) => {
        const text = redactUrls(`${before} https://${userinfo}@h.example/x.jar?sig=${query} ${after}`);
        expect(text).not.toContain('SECRET');
        expect(redactUrls(text)).toBe(text);
      }),
    );
  });

  it('has a query from its first question mark on, wherever that is', () => {
    expect(redactUrl('?sig=s3cret')).toBe('?***');
    expect(redactUrl('x?sig=s3cret')).toBe('x?***');
    expect(redactUrl('x.jar')).toBe('x.jar');
  });

  it('is the same as a word of a text, and as a text of one word', () => {
    const path = fc.stringMatching(/^[\w./~@:#-]{0,30}$/);
    fc.assert(
      fc.property(path, (rest) => {
        const url = `https://repo.example:8443/${rest}`;
        expect(redactUrl(url)).toBe(redactUrls(url));
        expect(redactUrls(`at ${url}`)).toBe(`at ${redactUrl(url)}`);
      }),
    );
  });

  it('keeps a host of 300 characters, and takes nothing longer for one', () => {
    expect(redactUrls(`https://${'h'.repeat(300)}/x.jar`)).toBe(`https://${'h'.repeat(300)}/x.jar`);
    expect(redactUrls(`https://${'h'.repeat(301)}/x.jar`)).toBe('https://***');
  });

  it('hides a word that is too long to be a URL that people read', () => {
    expect(redactUrls(`at https://h/${'x'.repeat(8_192)} now`)).toBe('at *** now');
    const longest = 'https://h/'.padEnd(8_192, 'x');
    expect(redactUrls(longest)).toBe(longest);
    expect(redactUrls(`${longest}x`)).toBe('***');
  });

  it.each([':/', '://', ':/ ', '.jar?', 'https://u@', 'https://u@ ', '?:/', '.'])(
    'is read in a time that grows with its length: %s',
    (part) => {
      const text = part.repeat((1024 * 1024) / part.length);
      const startedAt = performance.now();
      redactUrls(text);
      redactUrls(`:/${text.slice(0, 8_000)}(`);
      // Some ten milliseconds; quadratic work on a megabyte takes minutes.
      expect(performance.now() - startedAt).toBeLessThan(10_000);
    },
  );
});

describe('an image', () => {
  it('is one URL, whatever characters it has', () => {
    expect(redactUrl('https://us er:"s3cret@repo/a b.jar?sig= s3cret')).toBe('https://***@repo/a b.jar?***');
    expect(redactUrl('repo/x.jar?s3cret')).toBe('repo/x.jar?***');
  });

  it('has an ID that is the URL itself where there is no secret', () => {
    for (const url of ['https://repo/x.jar', 'file:///tmp/x.jar', 'nginx:1.29', '']) expect(imageIdOf(url)).toBe(url);
  });

  it('has an ID without secrets that tells queries apart', () => {
    const id = imageIdOf(SIGNED);
    expect(id).toMatch(/^https:\/\/repo\.example:8443\/a\/x\.jar\?\*\*\*#sha256=[0-9a-f]{12}$/);
    expect(imageIdOf(SIGNED)).toBe(id);
    expect(imageIdOf(`${SIGNED}0`)).not.toBe(id);
    expect(redactUrls(id)).toBe(id);
  });

  it('has the same ID with another password, which its digest does not show', () => {
    expect(imageIdOf('https://u:one@repo/x.jar?v=1')).toBe(imageIdOf('https://u:two@repo/x.jar?v=1'));
  });

  it('has the same ID whether this version or an earlier one wrote it', () => {
    for (const url of [SIGNED, 'https://u:p@repo/x.jar', 'https://u:p@repo/x.jar?v=1', 'https://repo/x.jar']) {
      expect(storedImageIdOf(url)).toBe(imageIdOf(url));
      expect(storedImageIdOf(imageIdOf(url))).toBe(imageIdOf(url));
    }
  });

  it('cannot pass for the image of another by its own name', () => {
    expect(imageIdOf(imageIdOf(SIGNED))).not.toBe(imageIdOf(SIGNED));
  });
});

describe('the log', () => {
  it('shows no secret of a URL, in whichever field or error', () => {
    const lines: string[] = [];
    const logger = createLogger('info', { write: (line: string) => void lines.push(line) });
    const err = new Error(`Invalid value: "${SIGNED}"`, { cause: new Error('https://u:s3cret@h/x.jar') });
    logger.child({ kind: SIGNED }).warn({ err, nested: { urls: [SIGNED] } }, `failed ${SIGNED}`);
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('s3cret');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      msg: 'failed https://repo.example:8443/a/x.jar?***',
      nested: { urls: ['https://repo.example:8443/a/x.jar?***'] },
    });
  });
});
