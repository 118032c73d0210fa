import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { brokerAddressOf, reconnectDelayMs } from '../../../../tunnels/mqtt/broker-socket.ts';
import { MESSAGE_TYPES, Topics } from '../../../../tunnels/mqtt/topics.ts';

describe('Topics', () => {
  const topics = new Topics('DEV', 'a@@@b');

  it('has the env in lower case, a filter for every message and one for the echo; what is said once is acknowledged', () => {
    expect(topics.filters()).toEqual({
      'koupleless_dev/+/base/heart': { qos: 0 },
      'koupleless_dev/+/base/queryBaseline': { qos: 1 },
      'koupleless_dev/+/base/health': { qos: 0 },
      'koupleless_dev/+/base/simpleBiz': { qos: 0 },
      'koupleless_dev/+/base/biz': { qos: 0 },
      'koupleless_dev/+/base/bizOperation': { qos: 1 },
      'koupleless_dev/+/base/batchInstallBizResponse': { qos: 1 },
      'koupleless_dev/controller/a@@@b/echo': { qos: 1 },
    });
    expect(topics.command('base-1', 'installBiz')).toBe('koupleless_dev/base-1/installBiz');
  });

  it.each(MESSAGE_TYPES)('knows whose %s it is', (type) => {
    expect(topics.parse(`koupleless_dev/10.0.0.1/base/${type}`)).toEqual({ identity: '10.0.0.1', type });
  });

  it.each([
    'koupleless_dev/base-1/base/baseline',
    'koupleless_dev/base-1/base',
    'koupleless_dev/base-1/base/heart/',
    'koupleless_dev/base-1/other/heart',
    'koupleless_test/base-1/base/heart',
    'koupleless_dev/base-1/base/constructor',
    'heart',
    '',
  ])('takes %s for none of a base', (topic) => {
    expect(topics.parse(topic)).toBeUndefined();
  });

  it('never throws on a topic', () => {
    fc.assert(
      fc.property(fc.string(), (topic) => {
        topics.parse(topic);
        topics.parse(`koupleless_dev/${topic}/base/heart`);
      }),
    );
  });

  it('keeps characters out of the echo topic that mean something there', () => {
    expect(new Topics('dev', 'a+b#c/d').echo).toBe('koupleless_dev/controller/a_b_c_d/echo');
  });
});

describe('brokerAddressOf', () => {
  it.each([
    ['mqtt://broker', { host: 'broker', port: 1883, isTls: false }],
    ['tcp://10.0.0.1:2883', { host: '10.0.0.1', port: 2883, isTls: false }],
    ['mqtts://broker.example', { host: 'broker.example', port: 8883, isTls: true }],
    ['tcp://broker', { host: 'broker', port: 1883, isTls: false }],
    ['ssl://broker', { host: 'broker', port: 8883, isTls: true }],
    ['mqtts://[2001:db8::1]:1', { host: '2001:db8::1', port: 1, isTls: true }],
  ])('reads %s', (url, address) => {
    expect(brokerAddressOf(url)).toEqual(address);
  });

  it.each(['ws://broker', 'mqtt://', 'broker:1883', 'constructor://x', ''])('refuses %s', (url) => {
    expect(() => brokerAddressOf(url)).toThrow(TypeError);
  });
});

describe('reconnectDelayMs', () => {
  it('is anything from 0 to a bound that doubles from 0.5 s to 5 s', () => {
    const bounds = [0, 1, 2, 3, 4, 5, 6, 7, 1_000_000].map((failures) => reconnectDelayMs(failures, 1));
    expect(bounds).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000]);
    expect(reconnectDelayMs(5, 0)).toBe(0);
    expect(reconnectDelayMs(5, 0.5)).toBe(2_500);
  });
});
