import { describe, expect, it } from 'vitest';
import { HELP, parseDemoOptions, UsageError } from '../../../samples/demo/options.ts';

describe('the flags of the demo', () => {
  it('have defaults', () => {
    expect(parseDemoOptions([])).toEqual({
      isOnce: false,
      isJava: false,
      isRollout: false,
      stepTimeoutMs: 60_000,
      broken: undefined,
    });
  });

  it('are read', () => {
    const options = parseDemoOptions(['--once', '--step-timeout', '15', '--break', 'refuse-jar']);
    expect(options).toMatchObject({ isOnce: true, stepTimeoutMs: 15_000, broken: 'refuse-jar' });
  });

  it('ask for real JVMs', () => {
    expect(parseDemoOptions(['--java'])).toMatchObject({ isOnce: false, isJava: true });
  });

  it.each([
    [['--rollout'], { isRollout: true, isJava: false }],
    [['--rollout', '--java', '--once'], { isRollout: true, isJava: true, isOnce: true }],
    [['--rollout', '--break', 'refuse-jar'], { isRollout: true, broken: 'refuse-jar' }],
  ])('%j ask for a ModuleDeployment', (args, options) => {
    expect(parseDemoOptions(args)).toMatchObject(options);
  });

  it('are all in the help', () => {
    expect(parseDemoOptions(['--help'])).toBeUndefined();
    for (const text of ['--once', '--java', '--rollout', '--step-timeout', 'silence-base', 'refuse-jar'])
      expect(HELP).toContain(text);
  });

  it.each([
    [['--step-timeout', '0'], /--step-timeout/],
    [['--step-timeout', '1.5'], /--step-timeout/],
    [['--break', 'everything'], /--break must be one of silence-base, refuse-jar, got 'everything'/],
    [['--ones'], /--ones/],
    [['--java', '--break', 'refuse-jar'], /--break works on simulated bases only/],
    [['--rollout', '--java', '--break', 'refuse-jar'], /--break works on simulated bases only/],
  ])('%j is refused with the flag named', (args, message) => {
    expect(() => parseDemoOptions(args)).toThrow(UsageError);
    expect(() => parseDemoOptions(args)).toThrow(message);
  });
});
