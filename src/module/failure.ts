import type { OperationResult } from '../tunnel/module.ts';

/** Why a module is not running, in kubelet words where one fits (README, "Module states"). */
export type FailureReason =
  | 'ErrImagePull'
  | 'RunContainerError'
  | 'InstallTimeout'
  | 'ModuleBroken'
  | 'ModuleStopped'
  | 'ModuleVanished'
  | 'BizDeactivated'
  | 'BaseRestarted'
  | 'KillContainerError'
  | 'SwitchError';

export interface Failure {
  readonly reason: FailureReason;
  /** One line for people. */
  readonly message: string;
}

/** What arklet says when it could not get or open the jar: its stack traces name the Java exception. */
const JAR_NOT_FETCHED =
  /FileNotFoundException|NoSuchFileException|UnknownHostException|ConnectException|NoRouteToHost|SocketTimeoutException|MalformedURLException|SSLException|ZipException|HTTP response code|Connection refused|not a valid|bizUrl should not be blank/i;

/** Classifies the answer to a failed command. */
export function failureOf(result: OperationResult): Failure {
  const message = result.message === '' ? `the base answered ${result.code}` : result.message;
  if (result.command === 'uninstall') return { reason: 'KillContainerError', message };
  if (result.command === 'switch') return { reason: 'SwitchError', message: `switchBiz failed: ${message}` };
  return { reason: JAR_NOT_FETCHED.test(message) ? 'ErrImagePull' : 'RunContainerError', message };
}
