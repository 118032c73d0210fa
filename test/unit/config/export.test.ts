import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';

function exportOf(env: Record<string, string>, controllers = 'export') {
  return loadConfig({ CONTROLLERS: controllers, ...env }, 'host-1', ['vk', 'export']).export;
}

describe('the export of Services', () => {
  it('serves no feed without a certificate', () => {
    expect(exportOf({})).toEqual({ cluster: 'kubernetes', dropsLost: false, feed: undefined });
  });

  it('is as its operator says', () => {
    const files = { EXPORT_CERT_PATH: '/tls/tls.crt', EXPORT_KEY_PATH: '/tls/tls.key', EXPORT_TOKENS_PATH: '/tokens' };
    expect(exportOf({ ...files, EXPORT_CLUSTER: 'sh-1', EXPORT_DROP_LOST: 'true' })).toEqual({
      cluster: 'sh-1',
      dropsLost: true,
      feed: { port: 9444, certPath: '/tls/tls.crt', keyPath: '/tls/tls.key', tokensPath: '/tokens' },
    });
  });

  it('is not there without the controller', () => {
    const env = { CONTROLLERS: 'vk', ENABLE_MQTT_TUNNEL: 'true', MQTT_BROKER: 'broker' };
    expect(loadConfig(env, 'host-1', ['vk', 'export']).export).toBeUndefined();
  });

  it('is refused with half a pair, and with tokens that nobody asks for', () => {
    const half = 'EXPORT_CERT_PATH and EXPORT_KEY_PATH: set both or none';
    expect(() => exportOf({ EXPORT_CERT_PATH: 'a' })).toThrow(half);
    expect(() => exportOf({ EXPORT_KEY_PATH: 'a' })).toThrow(half);
    expect(() => exportOf({ EXPORT_TOKENS_PATH: 'a' })).toThrow('EXPORT_TOKENS_PATH');
  });
});
