import { type OperationResult, WRONG_MODULE } from '../tunnel/module.ts';

/** Why a module is not running, in kubelet words where one fits (docs/modules.md, "Module states"). */
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

/** What to do, for failures whose words do not say it to somebody who has not built the agent. */
const ADVICE: readonly { readonly words: RegExp; readonly advice: string; readonly reason?: FailureReason }[] = [
  {
    words: /Child name \[[^\]]*\] is not unique/,
    advice:
      'a base accepts one web module per context path: delete the old Pod first (Deployment with maxSurge 0 and an ' +
      'anti-affinity on the name of the module), or annotate the Pod with install-strategy uninstallThenInstall',
  },
  {
    words: /Biz Name must not be empty|zip END header not found|error in opening zip file/,
    advice: 'the image is not a module: use the *-ark-biz.jar that sofa-ark-maven-plugin builds',
    reason: 'ErrImagePull',
  },
  {
    words: /OutOfMemoryError: Metaspace/,
    advice: 'the metaspace of the base is full: raise -XX:MaxMetaspaceSize, or restart the base',
  },
];

/** Classifies the answer to a failed command. */
export function failureOf(result: OperationResult): Failure {
  const message = result.message === '' ? `the base answered ${result.code}` : result.message;
  if (result.command === 'uninstall') return { reason: 'KillContainerError', message };
  if (result.command === 'switch') return { reason: 'SwitchError', message: `switchBiz failed: ${message}` };
  if (result.code === WRONG_MODULE) return { reason: 'ErrImagePull', message };
  const known = ADVICE.find(({ words }) => words.test(message));
  const reason = known?.reason ?? (JAR_NOT_FETCHED.test(message) ? 'ErrImagePull' : 'RunContainerError');
  return { reason, message: known ? `${known.advice}. The base says: ${message}` : message };
}
