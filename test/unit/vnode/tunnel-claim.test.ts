import { describe, expect, it } from 'vitest';
import { type HeldClaim, isSamePlace, placeOf, type TunnelClaim, weighClaim } from '../../../src/vnode/tunnel-claim.ts';

const NOW = 100_000;
const mqtt: TunnelClaim = { tunnel: 'mqtt_tunnel_provider', base: { ip: '192.0.2.1', port: 0 } };
const http: TunnelClaim = { tunnel: 'http_tunnel_provider', base: { ip: '192.0.2.1', port: 1238 } };
const otherPort: TunnelClaim = { ...http, base: { ip: '192.0.2.1', port: 1239 } };
const otherHost: TunnelClaim = { ...http, base: { ip: '192.0.2.2', port: 1238 } };
const noPort: TunnelClaim = { ...http, base: { ip: '192.0.2.1', port: 0 } };
const nowhere: TunnelClaim = { ...http, base: { ip: '0.0.0.0', port: 0 } };
const mqttElsewhere: TunnelClaim = { ...mqtt, base: { ip: '192.0.2.2', port: 0 } };

const held = (claim: TunnelClaim, more: Partial<HeldClaim['life']> = {}): HeldClaim => {
  return { place: claim, life: { wasHeard: true, lastHeardAt: NOW - 24_999, isRefusing: false, ...more } };
};

describe('a heartbeat under an identity that somebody has', () => {
  it.each<[string, HeldClaim, TunnelClaim, string]>([
    ['over the same tunnel is the same base', held(mqtt), mqtt, 'Same'],
    ['over MQTT is the same base wherever it is', held(mqtt), mqttElsewhere, 'Same'],
    ['over HTTP at the same address is the same base', held(http), http, 'Same'],
    ['over HTTP at another port is refused', held(http), otherPort, 'Refused'],
    ['over HTTP on another host is refused', held(http), otherHost, 'Refused'],
    ['is the base that has moved after a refused connection', held(http, { isRefusing: true }), otherPort, 'Moved'],
    ['is the base that has moved after 25 s of silence', held(http, { lastHeardAt: NOW - 25_000 }), otherHost, 'Moved'],
    [
      'over HTTP elsewhere is refused when a Node shows where it is',
      held(http, { wasHeard: false }),
      otherHost,
      'Refused',
    ],
    ['over HTTP is the base when its Node shows no port', held(noPort), http, 'Moved'],
    ['over HTTP on another host is refused when its Node shows an address', held(noPort), otherHost, 'Refused'],
    ['over HTTP is the base when its Node shows no address', held(nowhere), otherHost, 'Moved'],
    ['is the same base also after long silence', held(http, { lastHeardAt: 0, isRefusing: true }), http, 'Same'],
  ])('%s', (_, claim, heard, verdict) => {
    expect(weighClaim(claim, heard, NOW, false)).toBe(verdict);
  });
});

describe('a heartbeat over another tunnel than that of the Node', () => {
  const signs: Partial<HeldClaim['life']>[] = [{}, { wasHeard: false }, { lastHeardAt: 0 }, { isRefusing: true }];

  it.each(signs)('is refused, whatever the base there does, where anybody may have sent it: %o', (life) => {
    expect(weighClaim(held(mqtt, life), http, NOW, false)).toBe('Refused');
    expect(weighClaim(held(http, life), mqtt, NOW, false)).toBe('Refused');
    expect(weighClaim(held(noPort, life), mqtt, NOW, false)).toBe('Refused');
  });

  it.each(signs)('has the identity at once where the transport has authenticated it: %o', (life) => {
    expect(weighClaim(held(http, life), mqtt, NOW, true)).toBe('Moved');
  });
});

describe('a place', () => {
  it('is the same from both sides', () => {
    const all = [mqtt, mqttElsewhere, http, otherPort, otherHost];
    for (const a of all) for (const b of all) expect(isSamePlace(a, b)).toBe(isSamePlace(b, a));
  });

  it.each([
    [mqtt, 'mqtt_tunnel_provider'],
    [http, 'http_tunnel_provider at 192.0.2.1:1238'],
  ])('has a name', (claim, name) => {
    expect(placeOf(claim)).toBe(name);
  });
});
