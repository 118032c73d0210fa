import type { Reply } from './model.ts';
import { stackTraceOf } from './responses.ts';

/** The body for a command that the agent does not know. */
export const NOT_FOUND = JSON.stringify({ code: 'CMD_NOT_FOUND', message: 'please follow the doc' });

/** The body of an answer over HTTP; undefined when the process died before it could answer. */
export function httpAnswerOf(baseIdentity: string, { response, thrown }: Reply): string | undefined {
  if (thrown) {
    const errorStackTrace = stackTraceOf(thrown.exception, 'http');
    const message = `Internal Error: ${thrown.message}`;
    return JSON.stringify({ code: 'CMD_PROCESS_INTERNAL_ERROR', errorStackTrace, message });
  }
  if (!response) return undefined;
  const { code, data, message } = response;
  return JSON.stringify({ baseIdentity, code, data, message }, lowerCaseState);
}

/** Over HTTP the agent writes all states in lower case. */
function lowerCaseState(key: string, value: unknown): unknown {
  return key === 'bizState' && typeof value === 'string' ? value.toLowerCase() : value;
}
