import { messageOf } from '../errors.ts';
import type { LeaseClient } from '../kube/lease-client.ts';
import { isConflict, isNotFound } from '../kube/transport/api-error.ts';
import type { Logger } from '../logger.ts';
import { MEMBER_FORGOTTEN_MS } from './member.ts';
import type { MemberList } from './members.ts';

/** Takes away what members leave behind that ended without a word. */
export class GoneMembers {
  readonly #api: LeaseClient;
  readonly #logger: Logger;

  constructor({ api, logger }: { readonly api: LeaseClient; readonly logger: Logger }) {
    this.#api = api;
    this.#logger = logger;
  }

  /** `mayDelete`: of all replicas one is enough. A member that came back meanwhile has changed its lease: it stays. */
  sweep(list: MemberList, mayDelete: boolean): void {
    for (const { id, lease, isPresent } of list.silentFor(MEMBER_FORGOTTEN_MS)) {
      if (!isPresent) list.forget(id);
      else if (mayDelete) {
        this.#api.delete(lease.name, lease.uid, lease.resourceVersion).catch((error: unknown) => {
          if (isNotFound(error) || isConflict(error)) return;
          this.#logger.warn(
            { member: id, reason: messageOf(error) },
            'membership lease of a former member not deleted',
          );
        });
      }
    }
  }
}
