import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/config.ts';

const KNOWN = ['vk', 'rollout', 'admission'];

function webhookOf(env: Record<string, string>, controllers = 'admission') {
  return loadConfig({ CONTROLLERS: controllers, ...env }, 'host-1', KNOWN).webhook;
}

describe('the webhook server', () => {
  it('is reached at its Service, and makes its certificate itself', () => {
    const hosts = ['module-platform-webhook.system.svc', 'module-platform-webhook.system.svc.cluster.local'];
    expect(webhookOf({ POD_NAMESPACE: 'system' })).toEqual({ port: 9443, hosts, files: undefined });
  });

  it('is reached as its operator says, with the certificate of somebody else', () => {
    const env = { WEBHOOK_HOSTS: 'webhooks.example, 10.0.0.1,fd00::1', WEBHOOK_PORT: '0' };
    const files = { WEBHOOK_CERT_PATH: '/tls/tls.crt', WEBHOOK_KEY_PATH: '/tls/tls.key' };
    expect(webhookOf({ ...env, ...files })).toEqual({
      port: 0,
      hosts: ['webhooks.example', '10.0.0.1', 'fd00::1'],
      files: { certPath: '/tls/tls.crt', keyPath: '/tls/tls.key' },
    });
  });

  it('is not there without the controller', () => {
    expect(webhookOf({ WEBHOOK_PORT: '1' }, 'rollout')).toBeUndefined();
  });

  it('is refused with half a pair, and with what is no name', () => {
    const half = 'WEBHOOK_CERT_PATH and WEBHOOK_KEY_PATH: set both or none';
    expect(() => webhookOf({ WEBHOOK_CERT_PATH: 'a' })).toThrow(half);
    expect(() => webhookOf({ WEBHOOK_KEY_PATH: 'a' })).toThrow(half);
    for (const hosts of ['https://a', 'a:1', 'a,,b'])
      expect(() => webhookOf({ WEBHOOK_HOSTS: hosts })).toThrow('WEBHOOK_HOSTS');
  });
});
