import { expect, test } from 'vitest';
import { haproxyConfigOf } from '../../../samples/balancer/haproxy-config.ts';

test('a port that is left out gets no frontend, and the others stay', () => {
  const portOf = (servicePort: number) => ({
    name: `p${servicePort}`,
    servicePort,
    protocol: 'tcp',
    path: '',
    BCSVHost: '',
    backends: [],
  });
  const service = {
    namespace: 'shop',
    serviceName: 'pay',
    balance: 'roundrobin',
    maxconn: 10,
    ports: [portOf(80), portOf(81)],
  };
  const options = { bind: '127.0.0.1', portOffset: 1000, idleSocket: '/idle', without: new Set([80]) };
  const text = haproxyConfigOf([service as never], options);
  expect(text).not.toContain('frontend port-80\n');
  expect(text).toContain('bind 127.0.0.1:1081');
});
