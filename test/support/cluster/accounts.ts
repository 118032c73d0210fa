import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';

const DEPLOY = new URL('../../../deploy/', import.meta.url);
const NAME = 'module-controller';

/**
 * A service account with the rights that `deploy/` gives the controller, and as confined: the audit log then says which
 * replica it was.
 */
export async function createAccount(controlPlane: ControlPlane, account: string): Promise<void> {
  const documents = parseAllDocuments(await readFile(new URL('rbac.yaml', DEPLOY), 'utf8')).map(
    (document): KubeObject => document.toJS(),
  );
  const original = documents.find(({ kind }) => kind === 'ServiceAccount');
  const { namespace } = original.metadata;
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace }];
  const bindings = documents.filter(({ kind }) => kind.endsWith('RoleBinding'));
  await controlPlane.apply([
    { ...original, metadata: { name: account, namespace } },
    ...bindings.map((binding) => ({
      ...binding,
      metadata: { ...binding.metadata, name: `${binding.metadata.name}-of-${account}` },
      subjects,
    })),
  ]);
  await controlPlane.apply(await confinementOfAll(account));
}

/**
 * The policies, about every account whose name begins with that of the controller. One for each account would be many,
 * and each costs the API server time for each write, of whomever.
 */
async function confinementOfAll(account: string): Promise<string> {
  if (!account.startsWith(NAME)) throw new Error(`${account} is not confined: its name does not begin with ${NAME}`);
  const text = await readFile(new URL('confinement.yaml', DEPLOY), 'utf8');
  return text.replaceAll(/request\.userInfo\.username == ('[^']+')/g, 'request.userInfo.username.startsWith($1)');
}
