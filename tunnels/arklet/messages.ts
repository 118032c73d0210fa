import type { InstallStrategy } from '../../src/labels.ts';
import type { ModuleState } from '../../src/tunnel/module.ts';

/**
 * What arklet, the agent inside a base, says and takes, as far as the controller uses it; a base sends more.
 * Over MQTT every message of a base is wrapped: `{"publishTimestamp": <ms>, "data": <one of these>}`.
 * Over HTTP the same shapes travel bare.
 */

/**
 * `koupleless_{env}/{identity}/base/queryBaseline`, `POST {controller}/queryBaseline`; also a part of the heartbeat.
 */
export interface BaseMetadata {
  readonly identity: string;
  readonly name: string;
  readonly version: string;
  readonly clusterName: string;
}

/** `koupleless_{env}/{identity}/base/heart`, `POST {controller}/heartbeat`. */
export interface Heart {
  readonly baseMetadata: BaseMetadata;
  readonly localIP: string;
  readonly localHostName: string;
  readonly port: number;
  /** Upper case; '' where the base does not say. Only DEACTIVATED means something: the base goes down. */
  readonly state: string;
}

/** `koupleless_{env}/{identity}/base/health`, the answer to `POST {base}/health`. */
export interface Health {
  readonly code: string;
  /** `data.healthData.jvm`; undefined where the base has no say about it. */
  readonly javaUsedMetaspace: number | undefined;
  readonly javaCommittedMetaspace: number | undefined;
  /** -1 = unlimited. */
  readonly javaMaxMetaspace: number | undefined;
  readonly runTimeSeconds: number | undefined;
  readonly javaVersion: string | undefined;
  /** `data.healthData.masterBizInfo.bizName`: the base as a biz of itself, which some agents list among the others. */
  readonly masterBizName: string | undefined;
}

/**
 * One entry of `…/base/simpleBiz` (name, version, state), of `…/base/biz`, of the answer to
 * `POST {base}/queryAllBiz` and of every `bizInfos` (bizName, bizVersion, bizState).
 */
export interface BizInfo {
  readonly name: string;
  readonly version: string;
  /** Sent in any letter case. */
  readonly state: ModuleState;
}

/** The inner answer to one command, from sofa-ark. */
export interface ClientResponse {
  /** undefined where there is none, as in the answer to an asynchronous command. */
  readonly code: string | undefined;
  readonly message: string;
  /** Entries that cannot be read are left out here: an operation's end does not depend on them. */
  readonly bizInfos: readonly BizInfo[];
}

/** The outer answer to one command: `response` over MQTT, the whole body over HTTP. */
export interface CommandResponse {
  readonly code: string;
  readonly message: string;
  readonly data: ClientResponse | undefined;
  readonly errorStackTrace: string;
}

/** `koupleless_{env}/{identity}/base/bizOperation`, the answer to installBiz and uninstallBiz. */
export interface BizOperation {
  readonly command: 'installBiz' | 'uninstallBiz';
  /** undefined: the base could not parse the command. */
  readonly bizName: string | undefined;
  readonly bizVersion: string;
  readonly response: CommandResponse;
}

/** `koupleless_{env}/{identity}/base/batchInstallBizResponse`, the answer to a baseline. */
export interface BatchInstall {
  readonly response: CommandResponse;
  readonly responses: readonly ClientResponse[];
}

/** `koupleless_{env}/{identity}/installBiz`, `POST {base}/installBiz`. */
export interface InstallBiz {
  readonly bizName: string;
  readonly bizVersion: string;
  readonly bizUrl: string;
  readonly args?: readonly string[];
  readonly envs?: Readonly<Record<string, string>>;
  readonly installStrategy?: InstallStrategy;
}

/** `koupleless_{env}/{identity}/uninstallBiz`, `POST {base}/uninstallBiz`. */
export interface UninstallBiz {
  readonly bizName: string;
  readonly bizVersion: string;
}

/** `POST {base}/switchBiz`; not over MQTT. */
export interface SwitchBiz {
  readonly bizName: string;
  readonly bizVersion: string;
}
