import type { BizRequest, ModuleKey, OperationName } from './model.ts';

export type Target = ModuleKey | { invalid: string };

/** The module an install is about, or the agent's words for what is wrong with the command. */
export function installTargetOf(request: BizRequest): Target {
  const { bizName = '', bizVersion = '', bizUrl = '' } = request;
  if (bizUrl.trim() === '') return { invalid: 'bizUrl should not be blank' };
  if (bizName !== '' && bizVersion !== '') return { bizName, bizVersion };
  if (bizName !== '' || bizVersion !== '') {
    return { invalid: 'bizName and bizVersion should be both blank or both not blank.' };
  }
  const parsed = /([^/]+?)-(\d[^/]*?)(?:-ark-biz)?\.jar$/.exec(bizUrl);
  // Without name and version the agent opens the jar while it validates; here the jar's file name has to do.
  if (!parsed?.[1] || !parsed[2] || isMissingJar(bizUrl)) {
    return { invalid: `refresh biz info from jar failed: ${missingFileTextOf(bizUrl)}` };
  }
  return { bizName: parsed[1], bizVersion: parsed[2] };
}

/** The module of a command that names it. */
export function namedTargetOf(request: BizRequest): Target {
  const { bizName = '', bizVersion = '' } = request;
  if (bizName.trim() === '') return { invalid: 'bizName should not be blank' };
  if (bizVersion.trim() === '') return { invalid: 'bizVersion should not be blank' };
  return { bizName, bizVersion };
}

/** What the agent says against an asynchronous command before it takes it; undefined when it has nothing against it. */
export function faultOfAsync(command: OperationName, request: BizRequest): string | undefined {
  const target = command === 'installBiz' ? installTargetOf(request) : namedTargetOf(request);
  if (!request.requestId) return 'requestId should not be blank when async is true';
  return 'invalid' in target ? target.invalid : undefined;
}

/** Nothing is downloaded: a URL is of a missing jar when it says so. */
export function isMissingJar(bizUrl: string): boolean {
  return bizUrl.includes('missing');
}

/** Java's text for a file that is not there; over HTTP it is the URL alone. */
export function missingFileTextOf(bizUrl: string): string {
  return bizUrl.startsWith('file:') ? `${bizUrl.replace(/^file:(\/\/)?/, '')} (No such file or directory)` : bizUrl;
}
