import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { type CredentialPlugin, configInvalid } from './access-spec.ts';
import { execPluginOf } from './exec-plugin.ts';
import type { SelectedContext } from './kubeconfig-file.ts';
import { oidcPluginOf } from './oidc-plugin.ts';

/** The credential plugin that the user of a context names; undefined when it names none. */
export function credentialPluginOf(context: SelectedContext, clock: Clock): CredentialPlugin | undefined {
  const { user } = context;
  if (user.has('exec')) return naming(user.where('exec'), execPluginOf(context, clock));
  if (user.has('auth-provider')) return naming(user.where('auth-provider'), oidcPluginOf(user, clock));
  return undefined;
}

/** Errors get the code and the name of the field. */
function naming(where: string, plugin: CredentialPlugin): CredentialPlugin {
  return async (isRejected) => {
    try {
      return await plugin(isRejected);
    } catch (error) {
      throw configInvalid(where, `gives no credential: ${messageOf(error)}`, error);
    }
  };
}
