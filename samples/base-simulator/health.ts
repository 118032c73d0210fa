import type { ArkletResponse, BizState, ModuleKey } from './model.ts';

const MIB = 1024 * 1024;
/** What a freshly started small Spring Boot base was seen to use. */
const USED_AT_START_BYTES = 60_063_720;
const USED_PER_MODULE_BYTES = Math.round(1.2 * MIB);
const JITTER_BYTES = 200 * 1024;
const COMMITTED_AHEAD_BYTES = 622_616;

export interface Metaspace {
  usedBytes: number;
  committedBytes: number;
  /** -1 = unlimited. */
  maxBytes: number;
}

/** Fixed values replace the computed ones; null makes one computed again. */
export interface MetaspaceOverride {
  usedBytes?: number | null;
  maxBytes?: number | null;
}

/** `random` gives [0, 1). Usage never exceeds a limit. */
export function metaspaceOf(state: {
  moduleCount: number;
  maxBytes: number;
  override: MetaspaceOverride;
  random: () => number;
}): Metaspace {
  const maxBytes = state.override.maxBytes ?? state.maxBytes;
  const jitter = Math.round((state.random() * 2 - 1) * JITTER_BYTES);
  const computed = USED_AT_START_BYTES + state.moduleCount * USED_PER_MODULE_BYTES + jitter;
  const bounded = (bytes: number): number => (maxBytes < 0 ? bytes : Math.min(bytes, maxBytes));
  const usedBytes = state.override.usedBytes ?? bounded(computed);
  return { usedBytes, committedBytes: Math.max(usedBytes, bounded(usedBytes + COMMITTED_AHEAD_BYTES)), maxBytes };
}

export function elapsedSpaceOf(random: () => number): number {
  return Math.round(USED_PER_MODULE_BYTES + (random() * 2 - 1) * JITTER_BYTES);
}

export interface HealthFacts {
  name: string;
  version: string;
  runTimeSeconds: number;
  metaspace: Metaspace;
  modules: readonly (ModuleKey & { state: BizState })[];
}

export function healthResponse(facts: HealthFacts): ArkletResponse {
  const masterBizInfo = {
    bizName: facts.name,
    bizState: 'ACTIVATED',
    bizVersion: facts.version,
    webContextPath: '/',
  };
  const moduleInfos = facts.modules.map((module) => ({
    bizName: module.bizName,
    bizState: module.state,
    bizVersion: module.bizVersion,
    webContextPath: module.bizName,
  }));
  const healthData = {
    jvm: jvmOf(facts),
    cpu: CPU,
    masterBizInfo,
    pluginListInfo: PLUGINS,
    bizListInfo: [masterBizInfo, ...moduleInfos],
  };
  return { code: 'SUCCESS', data: { healthData } };
}

/** Everything but metaspace and run time is as recorded: the controller must not depend on it. */
function jvmOf(facts: HealthFacts): Record<string, unknown> {
  return {
    'java version': '17.0.15',
    'java home': '/usr/lib/jvm/java-17-openjdk-amd64',
    'run time(s)': facts.runTimeSeconds,
    'java used metaspace': facts.metaspace.usedBytes,
    'java max metaspace': facts.metaspace.maxBytes,
    'java committed metaspace': facts.metaspace.committedBytes,
    'total memory(M)': 160.0,
    'max memory(M)': 6028.0,
    'free memory(M)': 56.52348327636719,
    'init heap memory(M)': 380.0,
    'used heap memory(M)': 101.63558197021484,
    'committed heap memory(M)': 160.0,
    'max heap memory(M)': 6028.0,
    'init non heap memory(M)': 7.3125,
    'used non heap memory(M)': 76.94951629638672,
    'committed non heap memory(M)': 79.9375,
    'max non heap memory(M)': -9.5367431640625e-7,
    'loaded class count': 12350,
    'unload class count': 2,
    'total class count': 12352,
  };
}

const CPU = {
  count: 2,
  type: 'Intel(R) Xeon(R) Processor',
  'total used (%)': 81120.0,
  'user used (%)': 1.0108481262327416,
  'system used (%)': 0.46844181459566075,
  'free (%)': 98.42209072978304,
};

const PLUGIN_FOLDER = 'file:/app/base/base-web-single-host-0.0.1-SNAPSHOT.jar!/BOOT-INF/lib';
const PLUGINS = [
  {
    artifactId: 'web-ark-plugin',
    groupId: 'com.alipay.sofa',
    pluginActivator: 'com.alipay.sofa.ark.web.embed.WebPluginActivator',
    pluginName: 'web-ark-plugin',
    pluginUrl: `${PLUGIN_FOLDER}/web-ark-plugin-3.1.4.jar!/`,
    pluginVersion: '3.1.4',
  },
  {
    artifactId: 'koupleless-base-plugin',
    groupId: 'com.alipay.sofa.koupleless',
    pluginActivator: 'com.alipay.sofa.koupleless.plugin.ServerlessRuntimeActivator',
    pluginName: 'koupleless-base-plugin',
    pluginUrl: `${PLUGIN_FOLDER}/koupleless-base-plugin-2.1.6.jar!/`,
    pluginVersion: '2.1.6',
  },
];
