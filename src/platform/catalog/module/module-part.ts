import { ControllerError, messageOf } from '../../../errors.ts';
import { ApiError, isConflict, isForbidden, isRetriable } from '../../../kube/transport/api-error.ts';
import { UNWATCHED_AGAIN_MS } from '../../../reconcile/reconciler.ts';
import { shortened } from '../../../shortened.ts';
import { CATALOG_LABEL } from '../compose/compose.ts';
import { type CachedComposed, isMarked } from '../compose/composed-object.ts';
import type { Composed, OwnComposed, Restored } from '../compose/composer.ts';
import type { CachedModule } from './cached-module.ts';
import type { Outcome } from './module-status.ts';

const MAX_FIELDS_LENGTH = 512;

/** What has become of the workload or of the Service. */
export interface Part {
  readonly problem?: Outcome;
  readonly restored?: Restored & { readonly what: string };
  readonly contested?: string;
  readonly altered?: string;
  /** Undefined: it was not written. */
  readonly live?: CachedComposed;
  readonly requeueAfterMs?: number;
  /** It is to be tried again. */
  readonly error?: Error;
}

/** `kind`: that of the object, for messages. */
export async function partOf(
  module: CachedModule,
  kind: string,
  write: () => Promise<Composed | undefined>,
): Promise<Part> {
  const { name } = module;
  try {
    const result = await write();
    switch (result?.state) {
      case undefined:
        return {};
      case 'Taken': {
        const message = `another ${kind} has the name ${name}: delete it, and create it again with another name if you need it`;
        return { problem: { reason: 'NameTaken', message }, requeueAfterMs: UNWATCHED_AGAIN_MS };
      }
      case 'Deleting':
        return {
          problem: { reason: 'Deleting', message: 'its former workload or Service is still being deleted' },
          requeueAfterMs: UNWATCHED_AGAIN_MS,
        };
      case 'Contested':
      case 'Current':
        return ownPartOf(result);
    }
  } catch (error) {
    if (!(error instanceof ControllerError)) throw error;
    if (!(error instanceof ApiError) || isRetriable(error) || isConflict(error)) return { error };
    return { problem: refusalOf(error, module), requeueAfterMs: UNWATCHED_AGAIN_MS };
  }
}

/** The part of an object that is the Module's own. */
function ownPartOf({ live, restored, altered, contestMs, forMs }: OwnComposed): Part {
  const what = `${live.object.kind} ${live.name}`;
  const fields = shortened(altered.join(', '), MAX_FIELDS_LENGTH);
  const part: Part = {
    live,
    ...(restored && { restored: { ...restored, what } }),
    ...(contestMs !== undefined && {
      contested: `somebody changes ${what} again and again: it is changed back once in ${contestMs / 60_000} min at most`,
    }),
    ...(altered.length > 0 && { altered: `a webhook drops or changes fields of ${what}: ${fields}` }),
    ...(forMs < Number.POSITIVE_INFINITY && { requeueAfterMs: forMs }),
  };
  if (isMarked(live)) return part;
  const message = `a webhook drops the label ${CATALOG_LABEL.composed} of ${what}: changes of it are seen only every ${UNWATCHED_AGAIN_MS / 1000} s`;
  return { ...part, problem: { reason: 'Unwatched', message }, requeueAfterMs: Math.min(forMs, UNWATCHED_AGAIN_MS) };
}

function refusalOf(error: ApiError, { namespace }: CachedModule): Outcome {
  if (!isForbidden(error)) return { reason: 'Refused', message: messageOf(error) };
  const how = `bind the ClusterRole module-platform-catalog to the platform in namespace ${namespace}, or see what else refuses it`;
  return { reason: 'NotPermitted', message: `the platform may not write there: ${how}: ${messageOf(error)}` };
}
