import { stringify } from 'yaml';
import type { KeyPair } from './certificates.ts';

export type Credential = KeyPair | { token: string };

export interface KubeconfigParts {
  server: string;
  /** PEM. */
  certificateAuthority: string;
  userName: string;
  credential: Credential;
}

/** One cluster, one user, one context; the certificates are inside, so the file can be moved. */
export function renderKubeconfig({ server, certificateAuthority, userName, credential }: KubeconfigParts): string {
  const name = 'control-plane';
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(certificateAuthority) } }],
      users: [{ name: userName, user: renderCredential(credential) }],
      contexts: [{ name, context: { cluster: name, user: userName } }],
      'current-context': name,
    },
    { lineWidth: 0 },
  );
}

function renderCredential(credential: Credential): Record<string, string> {
  if ('token' in credential) return { token: credential.token };
  return {
    'client-certificate-data': base64(credential.certificate),
    'client-key-data': base64(credential.privateKey),
  };
}

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
