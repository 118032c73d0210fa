import { describe, expect, it } from 'vitest';
import { failureOf } from '../../../src/module/failure.ts';
import { fingerprintOf } from '../../../src/module/module-record.ts';
import type { OperationResult } from '../../../src/tunnel/module.ts';
import { makeResult, makeSpec } from '../../support/builders.ts';
import { hear } from '../tunnels/arklet/parsing.ts';
import { mqttBaseMessages, RECORDED_IDENTITY } from '../tunnels/recordings.ts';

/** What a real base answered to commands that failed, in the words that the tunnel makes of it. */
function recordedFailures(): OperationResult[] {
  return mqttBaseMessages
    .filter(({ topic }) => topic.endsWith('/bizOperation'))
    .flatMap(({ payload }) => hear('bizOperation', payload, RECORDED_IDENTITY).calls)
    .flatMap((call) => (call.on === 'operationResult' ? [call.result] : []))
    .filter(({ outcome }) => outcome === 'failed');
}

const reasonOf = (message: string): string =>
  failureOf(makeResult('install', 'b:1', { outcome: 'failed', message })).reason;

describe('why a module is not running', () => {
  it('is told in the words of the recorded base', () => {
    expect(recordedFailures().map(failureOf)).toEqual([
      { reason: 'ErrImagePull', message: expect.stringContaining('/nope.jar (No such file or directory)') },
      { reason: 'ErrImagePull', message: expect.stringContaining('bizUrl should not be blank') },
    ]);
  });

  it.each([
    'java.net.UnknownHostException: jars.example',
    'java.net.ConnectException: Connection refused',
    'Server returned HTTP response code: 404 for URL: https://jars.example/x.jar',
    'java.util.zip.ZipException: zip END header not found',
    'java.net.MalformedURLException: no protocol: x.jar',
  ])('is ErrImagePull when the jar cannot be had: %s', (message) => {
    expect(reasonOf(message)).toBe('ErrImagePull');
  });

  it('is ErrImagePull when the jar is that of another module', () => {
    const message = 'the jar contains module shop:1.0.0: the container name and BIZ_VERSION must match it';
    const result = makeResult('install', 'b:1', { outcome: 'failed', code: 'WRONG_MODULE', message });
    expect(failureOf(result)).toEqual({ reason: 'ErrImagePull', message });
  });

  it.each([
    'java.lang.IllegalArgumentException: Child name [biz1] is not unique',
    'java.lang.OutOfMemoryError: Metaspace',
    'BeanCreationException: Error creating bean',
  ])('is RunContainerError when the module does not start: %s', (message) => {
    expect(reasonOf(message)).toBe('RunContainerError');
  });

  it.each([
    ['java.lang.IllegalArgumentException: Child name [shop] is not unique', 'RunContainerError', 'maxSurge 0'],
    ['java.lang.IllegalArgumentException: Biz Name must not be empty!', 'ErrImagePull', 'sofa-ark-maven-plugin'],
    ['java.util.zip.ZipException: zip END header not found', 'ErrImagePull', 'sofa-ark-maven-plugin'],
    ['java.lang.OutOfMemoryError: Metaspace', 'RunContainerError', '-XX:MaxMetaspaceSize'],
  ])('says what to do, and then what the base said: %s', (message, reason, advice) => {
    const failure = failureOf(makeResult('install', 'b:1', { outcome: 'failed', message }));
    expect(failure.reason).toBe(reason);
    expect(failure.message).toContain(advice);
    expect(failure.message.endsWith(`The base says: ${message}`)).toBe(true);
  });

  it('is KillContainerError for each failed uninstall', () => {
    const result = makeResult('uninstall', 'b:1', { outcome: 'failed', message: 'java.io.FileNotFoundException' });
    expect(failureOf(result)).toEqual({ reason: 'KillContainerError', message: 'java.io.FileNotFoundException' });
  });

  it('is the base’s code where it has no words', () => {
    expect(failureOf(makeResult('install', 'b:1', { outcome: 'failed', code: 'CMD_NOT_FOUND' })).message).toBe(
      'the base answered CMD_NOT_FOUND',
    );
  });
});

describe('the fingerprint of an install', () => {
  it('does not depend on the order of env', () => {
    expect(fingerprintOf(makeSpec('b:1', { envs: { a: '1', b: '2' } }))).toBe(
      fingerprintOf(makeSpec('b:1', { envs: { b: '2', a: '1' } })),
    );
  });

  it('differs with URL, args, their order, and env', () => {
    const specs = [
      makeSpec('b:1'),
      makeSpec('b:1', { url: 'file:///x.jar' }),
      makeSpec('b:1', { args: ['a', 'b'] }),
      makeSpec('b:1', { args: ['b', 'a'] }),
      makeSpec('b:1', { args: ['ab'] }),
      makeSpec('b:1', { envs: { a: '1' } }),
      makeSpec('b:1', { envs: { a: '2' } }),
    ];
    expect(new Set(specs.map(fingerprintOf)).size).toBe(specs.length);
  });
});
