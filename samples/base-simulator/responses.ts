import {
  type ArkletResponse,
  type BizState,
  identityOf,
  type ModuleKey,
  type Reply,
  type SimulatedModule,
  type Thrown,
} from './model.ts';

const RUNTIME_EXCEPTION = 'com.alipay.sofa.koupleless.arklet.core.common.exception.ArkletRuntimeException';
const VALIDATION_EXCEPTION = 'com.alipay.sofa.koupleless.arklet.core.common.exception.CommandValidationException';

const HANDLER_FRAMES = [
  'com.alipay.sofa.koupleless.arklet.core.command.builtin.handler.InstallBizHandler.handle(InstallBizHandler.java:79)',
  'com.alipay.sofa.koupleless.arklet.core.command.CommandServiceImpl.process(CommandServiceImpl.java:186)',
];
const TUNNEL_FRAMES = {
  mqtt: [
    'com.alipay.sofa.koupleless.arklet.tunnel.mqtt.paho.handler.MsgHandler.handle(MsgHandler.java:62)',
    'java.base/java.util.concurrent.Executors$RunnableAdapter.call(Executors.java:539)',
    'java.base/java.util.concurrent.FutureTask.run(FutureTask.java:264)',
    'java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)',
    'java.base/java.util.concurrent.ThreadPoolExecutor$Worker.run(ThreadPoolExecutor.java:635)',
    'java.base/java.lang.Thread.run(Thread.java:840)',
  ],
  http: [
    'com.alipay.sofa.koupleless.arklet.core.api.tunnel.http.netty.NettyHttpServer$NettyHttpHandler.channelRead0(NettyHttpServer.java:158)',
    'io.netty.channel.SimpleChannelInboundHandler.channelRead(SimpleChannelInboundHandler.java:99)',
    'io.netty.channel.AbstractChannelHandlerContext.invokeChannelRead(AbstractChannelHandlerContext.java:444)',
    'io.netty.util.concurrent.FastThreadLocalRunnable.run(FastThreadLocalRunnable.java:30)',
    'java.base/java.lang.Thread.run(Thread.java:840)',
  ],
};

/** The text of a Java stack trace, as the tunnel that caught the exception prints it. */
export function stackTraceOf(exception: string, tunnel: 'mqtt' | 'http'): string {
  const frames = [...HANDLER_FRAMES, ...TUNNEL_FRAMES[tunnel]];
  return `${[exception, ...frames.map((frame) => `\tat ${frame}`)].join('\n')}\n`;
}

/** Over MQTT the stack trace of an exception travels in `data.message`. */
function thrown(exception: string, message: string): { response: ArkletResponse; thrown: Thrown } {
  const data = { code: 'FAILED', message: stackTraceOf(exception, 'mqtt') };
  return { response: { code: 'FAILED', message, data }, thrown: { exception, message } };
}

export function invalidCommand(message: string): Reply {
  return { outcome: 'refused:invalid', ...thrown(`${VALIDATION_EXCEPTION}: ${message}`, message) };
}

/** `cause` is the text of a Java exception, class name first. */
export function commandThrew(cause: string): Reply {
  return { outcome: 'failed', ...thrown(`${RUNTIME_EXCEPTION}: ${cause}`, cause) };
}

/** Ark stops a biz only once its start is over. */
export const STOP_OF_RESOLVED =
  'com.alipay.sofa.ark.exception.ArkRuntimeException: BizState must be ACTIVATED, DEACTIVATED or BROKEN.';

/** An uninstall takes the context of the biz away as it begins: a second one meanwhile finds none. */
export function secondStopOf({ bizName }: ModuleKey): string {
  const text = `No BizRuntimeContext found for biz: ${bizName}`;
  return `com.alipay.sofa.koupleless.common.exception.BizRuntimeException: ${text}`;
}

export function commandConflict(module: ModuleKey, command: string, unfinished: string): ArkletResponse {
  const text = `${identityOf(module)} ${command} conflict, exist unfinished command(${unfinished}) for this biz`;
  return { code: 'FAILED', message: `FAILED:${text}` };
}

/** What ark itself says about one module; a batch install holds one per URL. */
export interface ClientResponse {
  code: 'SUCCESS' | 'FAILED' | 'REPEAT_BIZ' | 'NOT_FOUND_BIZ' | 'ILLEGAL_STATE_BIZ';
  message: string;
  bizInfos?: unknown[];
  elapsedSpace?: number;
}

export function repeatBiz(module: ModuleKey): ClientResponse {
  return { code: 'REPEAT_BIZ', message: `Biz: ${identityOf(module)} has been installed or registered.` };
}

export function installed(module: SimulatedModule, costMs: number, startedAt: Date): ClientResponse {
  const started = `${startedAt.toISOString().slice(11, 19)},${startedAt.toISOString().slice(20, 23)}`;
  return {
    code: 'SUCCESS',
    message: `Install Biz: ${identityOf(module)} success, cost: ${Math.round(costMs)} ms, started at: ${started}`,
    bizInfos: [bizModelOf(module)],
  };
}

export function uninstalled(module: ModuleKey): ClientResponse {
  return { code: 'SUCCESS', message: `Uninstall biz: ${identityOf(module)} success.` };
}

export function notFoundBiz(module: ModuleKey): ClientResponse {
  return { code: 'NOT_FOUND_BIZ', message: `Uninstall biz: ${identityOf(module)} not found.` };
}

/** `undefined`: the module is not there. */
export function switched(module: ModuleKey, state: BizState | undefined): ClientResponse {
  const identity = identityOf(module);
  if (state === undefined) return { code: 'NOT_FOUND_BIZ', message: `Switch biz: ${identity} not found.` };
  if (state === 'ACTIVATED' || state === 'DEACTIVATED') {
    return { code: 'SUCCESS', message: `Switch biz: ${identity} is activated.` };
  }
  return { code: 'ILLEGAL_STATE_BIZ', message: `Switch Biz: ${identity}'s state must not be ${state}.` };
}

/** The whole biz as ark serialises it, with its empty lists. */
function bizModelOf(module: SimulatedModule): Record<string, unknown> {
  return {
    attributes: {},
    bizName: module.bizName,
    bizState: module.state,
    bizStateRecords: [{}, {}],
    bizTempWorkDir: module.tempWorkDir,
    bizUrl: `file:${module.tempWorkDir}/`,
    bizVersion: module.bizVersion,
    classPath: [`file:${module.tempWorkDir}/`, `file:${module.tempWorkDir}/lib`],
    declaredMode: true,
    denyImportClasses: [],
    denyImportPackageNodes: [],
    denyImportPackageStems: [],
    denyImportPackages: [],
    denyImportResources: [],
    denyPrefixImportResourceStems: [],
    denySuffixImportResourceStems: [],
    identity: identityOf(module),
    injectExportPackages: [],
    injectPluginDependencies: [],
    mainClass: mainClassOf(module),
    priority: 100,
    webContextPath: module.bizName,
  };
}

function mainClassOf(module: ModuleKey): string {
  return `com.example.${module.bizName.replaceAll(/[^A-Za-z0-9]/g, '')}.Application`;
}

/** The agent writes states of this message in lower case, those inside of command answers in upper case. */
export function simpleBizOf(module: ModuleKey & { state: BizState }): Record<string, unknown> {
  const state = module.state.toLowerCase();
  return { name: module.bizName, version: module.bizVersion, state, latestStateRecord: {} };
}

/** An item of the full list: over HTTP, and on `base/biz` of older agents. */
export function fullBizOf(module: ModuleKey & { state: BizState }): Record<string, unknown> {
  return {
    bizName: module.bizName,
    bizState: module.state.toLowerCase(),
    bizStateRecords: [{}, {}],
    bizVersion: module.bizVersion,
    mainClass: mainClassOf(module),
    webContextPath: module.bizName,
  };
}
