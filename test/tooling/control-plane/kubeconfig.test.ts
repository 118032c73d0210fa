import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderKubeconfig } from '../../../samples/control-plane/kubeconfig.ts';

const common = { server: 'https://127.0.0.1:20001', certificateAuthority: 'CA PEM', userName: 'alice' };
const decode = (text: string) => Buffer.from(text, 'base64').toString();

describe('renderKubeconfig', () => {
  it('has one context that joins the cluster and the user', () => {
    const config = parse(renderKubeconfig({ ...common, credential: { token: 'secret' } }));
    const [context] = config.contexts;
    expect(context.name).toBe(config['current-context']);
    expect(context.context).toEqual({ cluster: config.clusters[0].name, user: 'alice' });
    expect(config.clusters[0].cluster.server).toBe(common.server);
  });

  it('carries the authority and never turns verification off', () => {
    const text = renderKubeconfig({ ...common, credential: { token: 'secret' } });
    expect(decode(parse(text).clusters[0].cluster['certificate-authority-data'])).toBe('CA PEM');
    expect(text).not.toContain('insecure-skip-tls-verify');
  });

  it('carries a token as it is', () => {
    const token = 'x'.repeat(1200);
    const config = parse(renderKubeconfig({ ...common, credential: { token } }));
    expect(config.users).toEqual([{ name: 'alice', user: { token } }]);
  });

  it('carries a certificate and its key', () => {
    const credential = { certificate: 'CERT PEM', privateKey: 'KEY PEM' };
    const [user] = parse(renderKubeconfig({ ...common, credential })).users;
    expect(decode(user.user['client-certificate-data'])).toBe('CERT PEM');
    expect(decode(user.user['client-key-data'])).toBe('KEY PEM');
  });
});
