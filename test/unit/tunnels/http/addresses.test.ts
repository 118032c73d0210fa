import { describe, expect, it } from 'vitest';
import { AddressPolicy } from '../../../../src/tunnel/address-policy.ts';

describe('AddressPolicy', () => {
  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.0.1',
    '169.254.169.254',
    '100.100.100.200',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    'fe80::1',
    'febf::1',
    'ff02::1',
    'fd00:ec2::254',
    'fd20:ce::254',
  ])('never calls %s', (ip) => {
    expect(new AddressPolicy().faultOf(ip)).toBe('is not an address of a base');
  });

  it.each([
    ['0.0.0.0', '0.255.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['169.254.0.0', '169.254.255.255'],
    // Multicast and, next to it, the reserved addresses.
    ['224.0.0.0', '255.255.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['::', '::ffff:ffff'],
    ['64:ff9b::', '64:ff9b::ffff:ffff'],
    ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
    ['2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['::ffff:0:0:0', '::ffff:0:ffff:ffff'],
    ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('calls nothing from %s to %s', (first, last) => {
    const policy = new AddressPolicy();
    expect([first, last].map((ip) => policy.faultOf(ip))).toEqual(Array(2).fill('is not an address of a base'));
  });

  it.each([
    ['1.0.0.0', '126.255.255.255'],
    ['128.0.0.0', '169.253.255.255'],
    ['169.255.0.0', '191.255.255.255'],
    ['192.0.1.0', '223.255.255.255'],
    ['::1:0:0', '64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['64:ff9b:2::', '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:1::', '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2003::', 'fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('calls what lies between those, as %s and %s', (first, last) => {
    const policy = new AddressPolicy();
    expect([first, last].map((ip) => policy.faultOf(ip))).toEqual([undefined, undefined]);
  });

  it.each(['', 'localhost', '10.0.0.1:80', '10.0.0', '127.1', '0x7f.0.0.1', '010.0.0.1', 'fe80::1%eth0', '[::1]'])(
    'takes %j for no address',
    (ip) => {
      for (const policy of [new AddressPolicy(), new AddressPolicy([{ address: '::', prefixLength: 0 }])])
        expect(policy.faultOf(ip)).toBe('is not an IP address');
    },
  );

  it.each([
    '10.0.0.1',
    '172.16.3.4',
    '192.168.1.1',
    '192.0.2.2',
    '100.64.0.1',
    '8.8.8.8',
    '::ffff:10.0.0.1',
    'fd00::2',
  ])('calls %s by default', (ip) => {
    expect(new AddressPolicy().faultOf(ip)).toBeUndefined();
  });

  it.each([
    ['10.1.2.3', true],
    ['::ffff:10.1.2.3', true],
    ['::ffff:a01:203', true],
    ['11.0.0.1', false],
    ['::ffff:11.0.0.1', false],
    ['127.0.0.1', true],
    ['127.0.0.2', false],
    ['fd12::1', true],
    ['fd13::1', false],
  ])('with networks of its own calls those only: %s %s', (ip, isCalled) => {
    const policy = new AddressPolicy([
      { address: '10.0.0.0', prefixLength: 8 },
      { address: '127.0.0.1', prefixLength: 32 },
      { address: 'fd12::', prefixLength: 16 },
    ]);
    expect(policy.faultOf(ip)).toBe(isCalled ? undefined : 'is in no network of bases');
  });

  it.each([
    '127.0.0.1',
    '169.254.169.254',
    '169.254.0.1',
    '100.100.100.200',
    '224.0.0.1',
    '::ffff:127.0.0.1',
    '::1',
    'fe80::1',
  ])('does not call %s for a wide network', (ip) => {
    for (const address of ['0.0.0.0', '::'])
      expect(new AddressPolicy([{ address, prefixLength: 0 }]).faultOf(ip)).toMatch(
        /is not an address of a base|is in no network/,
      );
    const all = new AddressPolicy([
      { address: '0.0.0.0', prefixLength: 0 },
      { address: '::', prefixLength: 0 },
    ]);
    expect(all.faultOf(ip)).toBe('is not an address of a base');
  });

  it.each([
    ['127.0.0.0', 8, '127.0.0.1', true],
    ['127.0.0.0', 8, '::ffff:127.0.0.1', true],
    ['127.0.0.1', 32, '127.0.0.2', false],
    ['126.0.0.0', 7, '127.0.0.1', false],
    ['::1', 128, '::1', true],
    ['169.254.0.0', 16, '169.254.7.7', true],
    // A metadata service is listed by itself.
    ['169.254.0.0', 16, '169.254.169.254', false],
    ['169.254.169.254', 32, '169.254.169.254', true],
  ])('with %s/%i listed: whether it calls %s is %s', (address, prefixLength, ip, isCalled) => {
    expect(new AddressPolicy([{ address, prefixLength }]).faultOf(ip) === undefined).toBe(isCalled);
  });
});
