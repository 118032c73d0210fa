import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';

function configOf(env: Record<string, string>, controllers = 'export') {
  return loadConfig({ CONTROLLERS: controllers, ...env }, 'host-1', ['vk', 'export', 'catalog']);
}

describe('the export of Services', () => {
  it('serves no feed without a certificate', () => {
    const { export: exported, feed } = configOf({});
    expect({ exported, feed }).toEqual({ exported: { cluster: 'kubernetes', dropsLost: false }, feed: undefined });
  });

  it('is as its operator says', () => {
    const files = { EXPORT_CERT_PATH: '/tls/tls.crt', EXPORT_KEY_PATH: '/tls/tls.key', EXPORT_TOKENS_PATH: '/tokens' };
    const feed = { port: 9444, certPath: '/tls/tls.crt', keyPath: '/tls/tls.key' };
    expect(configOf({ ...files, EXPORT_CLUSTER: 'sh-1', EXPORT_DROP_LOST: 'true' })).toMatchObject({
      export: { cluster: 'sh-1', dropsLost: true },
      feed: { ...feed, groupTokensPath: '/tokens', appTokensPath: undefined },
    });
    expect(configOf({ ...files, CATALOG_TOKENS_PATH: '/apps' }, 'catalog')).toMatchObject({
      export: undefined,
      feed: { ...feed, appTokensPath: '/apps' },
    });
  });

  it('is not there without the controller', () => {
    const env = { ENABLE_MQTT_TUNNEL: 'true', MQTT_BROKER: 'broker', EXPORT_CERT_PATH: 'a', EXPORT_KEY_PATH: 'b' };
    expect(configOf(env, 'vk')).toMatchObject({ export: undefined, feed: undefined });
  });

  it('is refused with half a pair, and with tokens that nobody asks for', () => {
    const half = 'EXPORT_CERT_PATH and EXPORT_KEY_PATH: set both or none';
    expect(() => configOf({ EXPORT_CERT_PATH: 'a' })).toThrow(half);
    expect(() => configOf({ EXPORT_KEY_PATH: 'a' })).toThrow(half);
    expect(() => configOf({ EXPORT_TOKENS_PATH: 'a' })).toThrow('EXPORT_TOKENS_PATH');
    expect(() => configOf({ CATALOG_TOKENS_PATH: 'a' })).toThrow('CATALOG_TOKENS_PATH');
  });
});
