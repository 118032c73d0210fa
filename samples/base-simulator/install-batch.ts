import type { InstallResult } from './install-run.ts';
import type { BizRequest, ModuleKey, Reply } from './model.ts';
import * as responses from './responses.ts';
import { installTargetOf, type Target } from './validation.ts';

export interface BatchOptions {
  onReply: (index: number, reply: Reply) => void;
  elapsedSpace: () => number;
}

/** One invalid item refuses the whole batch; otherwise the items succeed and fail one by one. */
export async function runBatch(
  requests: readonly BizRequest[],
  install: (request: BizRequest, target: ModuleKey) => Promise<InstallResult>,
  options: BatchOptions,
): Promise<Reply> {
  const targets = requests.map(installTargetOf);
  const invalid = targets.find((target) => 'invalid' in target);
  if (invalid && 'invalid' in invalid) return refusal(requests.length, invalid.invalid, options);
  const results = await Promise.all(
    requests.map(async (request, index) => {
      const result = await install(request, targets[index] as Exclude<Target, { invalid: string }>);
      options.onReply(index, { outcome: result.outcome });
      return { request, result };
    }),
  );
  if (results.some(({ result }) => result.outcome === 'died')) return { outcome: 'died' };
  const bizUrlToResponse: Record<string, unknown> = {};
  for (const { request, result } of results) bizUrlToResponse[request.bizUrl ?? ''] = clientResponseOf(result);
  const isSuccess = results.every(({ result }) => result.outcome === 'executed');
  const code = isSuccess ? 'SUCCESS' : 'FAILED';
  const message = isSuccess ? 'batch install success' : 'batch install failed';
  const data = { bizUrlToResponse, code, elapsedSpace: options.elapsedSpace(), message };
  return isSuccess
    ? { outcome: 'executed', response: { code, data } }
    : { outcome: 'failed', response: { code, message: 'install biz not success!', data } };
}

function refusal(count: number, reason: string, options: BatchOptions): Reply {
  for (let index = 0; index < count; index += 1) options.onReply(index, { outcome: 'refused:invalid' });
  return responses.invalidCommand(reason);
}

function clientResponseOf(result: InstallResult): unknown {
  if ('client' in result) return result.client;
  // The text of the exception without its class, as `getMessage` gives it.
  const text = 'exception' in result ? result.exception.replace(/^[\w.]+: /, '') : '';
  return { code: 'FAILED', message: `internal exception: ${text}` };
}
