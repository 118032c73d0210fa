import type { BizRequest, Outcome, Reply } from './model.ts';
import { invalidCommand } from './responses.ts';

interface OperationRecord {
  arkBizMeta: object;
  elapsedTime: number;
  endTime?: number;
  endTimestamp: number;
  message?: string;
  requestId: string;
  startTime: number;
  startTimestamp: number;
  status: 'INITIALIZED' | 'EXECUTING' | 'SUCCEEDED' | 'FAILED';
  threadName?: string;
  throwable?: object;
}

/** What became of the asynchronous commands of one process, by request id. */
export class OperationRecords {
  readonly #wallTimeMs: () => number;
  /** Ends with the process, as that of the agent. */
  readonly #records = new Map<string, OperationRecord>();

  constructor(wallTimeMs: () => number) {
    this.#wallTimeMs = wallTimeMs;
  }

  /** Starts `work`, unless the request id was seen before, and replies at once. `onEnd` is called once. */
  start(
    request: BizRequest,
    { work, onEnd }: { work: () => Promise<Reply>; onEnd: (outcome: Outcome) => void },
  ): Reply {
    const requestId = request.requestId ?? '';
    if (this.#records.has(requestId)) {
      const message = `The request corresponding to the requestId(${requestId}) has been executed.`;
      onEnd('refused:conflict');
      return { outcome: 'refused:conflict', response: { code: 'FAILED', message } };
    }
    const record = this.#recordOf(requestId, request);
    this.#records.set(requestId, record);
    const reply: Reply = { outcome: 'executed', response: { code: 'SUCCESS', data: { ...record } } };
    record.status = 'EXECUTING';
    record.threadName = `ARKLET-ark-biz-ops-0-T${this.#records.size}`;
    void work().then((result) => {
      this.#end(record, result);
      onEnd(result.outcome);
    });
    return reply;
  }

  query(requestId: string | undefined): Reply {
    if (!requestId) return invalidCommand('requestId is blank');
    const record = this.#records.get(requestId);
    if (record) return { outcome: 'executed', response: { code: 'SUCCESS', data: { ...record } } };
    return { outcome: 'failed', response: { code: 'FAILED', message: 'Not found the corresponding ops record.' } };
  }

  #recordOf(requestId: string, { bizName, bizVersion, bizUrl, installStrategy }: BizRequest): OperationRecord {
    const now = this.#wallTimeMs();
    const install = bizUrl === undefined ? {} : { bizUrl, installStrategy: installStrategy ?? 'installOnly' };
    return {
      arkBizMeta: { async: true, bizName, bizVersion, ...install, requestId },
      elapsedTime: 0,
      endTimestamp: 0,
      requestId,
      startTime: now,
      startTimestamp: now,
      status: 'INITIALIZED',
    };
  }

  #end(record: OperationRecord, result: Reply): void {
    if (result.outcome === 'died') return;
    const endedAt = this.#wallTimeMs();
    Object.assign(record, { endTime: endedAt, endTimestamp: endedAt, elapsedTime: endedAt - record.startTimestamp });
    record.status = result.outcome === 'executed' ? 'SUCCEEDED' : 'FAILED';
    if (result.outcome === 'refused:conflict') {
      // The agent refuses it before it calls it executing, and fails only what is executing: it stays as it was.
      record.status = 'INITIALIZED';
      record.message = 'command conflict, exist unfinished command for this biz';
    } else if (result.thrown) {
      const { message } = result.thrown;
      record.message = message;
      record.throwable = { localizedMessage: message, message, stackTrace: [], suppressed: [] };
    } else if (result.response?.message !== undefined) {
      record.message = result.response.message;
    }
  }
}
