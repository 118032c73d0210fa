import { isIP } from 'node:net';
import { canonicalAddress } from '../../src/ip-address.ts';
import { MODULE_STATES, type ModuleState } from '../../src/tunnel/module.ts';
import type {
  BaseMetadata,
  BatchInstall,
  BizInfo,
  BizOperation,
  ClientResponse,
  CommandResponse,
  Health,
  Heart,
} from './messages.ts';
import { WireFault, type WireValue } from './wire-value.ts';

/** Foreign value → message. Each throws WireFault, so all are to be called through `parse`. */

const MAX_NAME_LENGTH = 253;
const MAX_VERSION_LENGTH = 128;
/**
 * Maximum length of names and versions that others have installed, however odd: one refused entry would discard the
 * whole list.
 */
const MAX_BIZ_LENGTH = 4_096;
const MAX_CODE_LENGTH = 128;
const MAX_ENTRIES = 10_000;
/** No base has room for this many modules; a longer list must not keep the controller busy. */
const MAX_MODULES = 2_000;
const MAX_PORT = 65_535;

export function readBaseMetadata(value: WireValue): BaseMetadata {
  return {
    identity: value.field('identity').text(MAX_NAME_LENGTH),
    name: value.field('name').optionalText(MAX_NAME_LENGTH) ?? '',
    version: value.field('version').optionalText(MAX_VERSION_LENGTH) ?? '',
    clusterName: value.field('clusterName').optionalText(MAX_NAME_LENGTH) ?? '',
  };
}

export function readHeart(value: WireValue): Heart {
  const localIP = value.field('localIP');
  const ip = localIP.text(MAX_NAME_LENGTH);
  // A zone (`fe80::1%eth0`) is a name of the base's own network interface.
  if (isIP(ip) === 0 || ip.includes('%')) throw localIP.fault('is not an IP address');
  return {
    baseMetadata: readBaseMetadata(value.field('baseMetadata')),
    // Kubernetes 1.36 refuses a Pod status with an IPv4-mapped IPv6 address.
    localIP: canonicalAddress(ip),
    localHostName: value.field('localHostName').optionalText(MAX_NAME_LENGTH) ?? '',
    port: readPort(value.field('port')),
    state: (value.field('state').optionalText(MAX_CODE_LENGTH) ?? '').toUpperCase(),
  };
}

/** Over HTTP a base says where its arklet listens: commands go there. */
export function readHttpHeart(value: WireValue): Heart {
  const heart = readHeart(value);
  if (heart.port === 0) throw value.field('port').fault('is missing or 0');
  return heart;
}

function readPort(value: WireValue): number {
  const port = value.optionalNumber() ?? 0;
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) throw value.fault('is not a port');
  return port;
}

export function readHealth(value: WireValue): Health {
  const healthData = value.field('data').field('healthData');
  const jvm = healthData.field('jvm');
  return {
    code: value.field('code').text(MAX_CODE_LENGTH),
    javaUsedMetaspace: jvm.field('java used metaspace').optionalNumber(),
    javaCommittedMetaspace: jvm.field('java committed metaspace').optionalNumber(),
    javaMaxMetaspace: jvm.field('java max metaspace').optionalNumber(),
    runTimeSeconds: jvm.field('run time(s)').optionalNumber(),
    javaVersion: jvm.field('java version').optionalText(MAX_VERSION_LENGTH),
    masterBizName: healthData.field('masterBizInfo').field('bizName').optionalText(MAX_BIZ_LENGTH),
  };
}

/**
 * A base's whole module list, bare or as the `data` of an answer. One entry that cannot be read refuses the
 * list: a module that is missing from a list counts as not installed.
 */
export function readBizList(value: WireValue): BizInfo[] {
  if (value.isList) return value.list(MAX_MODULES).map(readBizInfo);
  const code = value.field('code');
  if (code.text(MAX_CODE_LENGTH) !== 'SUCCESS') throw code.fault('is not SUCCESS');
  return value.field('data').list(MAX_MODULES).map(readBizInfo);
}

function readBizInfo(value: WireValue): BizInfo {
  const isFull = !value.field('bizName').isAbsent;
  return {
    name: value.field(isFull ? 'bizName' : 'name').text(MAX_BIZ_LENGTH),
    version: value.field(isFull ? 'bizVersion' : 'version').text(MAX_BIZ_LENGTH),
    state: readState(value.field(isFull ? 'bizState' : 'state')),
  };
}

function readState(value: WireValue): ModuleState {
  const text = value.text(MAX_CODE_LENGTH).toUpperCase();
  const state = MODULE_STATES.find((known) => known === text);
  if (state === undefined) throw value.fault('is not a module state');
  return state;
}

export function readBizOperation(value: WireValue): BizOperation {
  const command = value.field('command');
  const name = command.text(MAX_CODE_LENGTH);
  if (name !== 'installBiz' && name !== 'uninstallBiz') throw command.fault('is not installBiz or uninstallBiz');
  return {
    command: name,
    bizName: value.field('bizName').optionalText(MAX_BIZ_LENGTH) || undefined,
    bizVersion: value.field('bizVersion').optionalText(MAX_BIZ_LENGTH) ?? '',
    response: readCommandResponse(value.field('response')),
  };
}

export function readBatchInstall(value: WireValue): BatchInstall {
  const response = value.field('response');
  const byUrl = response.field('data').field('bizUrlToResponse');
  return {
    response: readCommandResponse(response),
    responses: byUrl.values(MAX_ENTRIES).map(readClientResponse),
  };
}

/** Over HTTP most answers say whose they are; those of an agent in trouble do not. */
export function readAnsweredBy(value: WireValue): string | undefined {
  return value.isList ? undefined : value.field('baseIdentity').optionalText(MAX_NAME_LENGTH);
}

export function readCommandResponse(value: WireValue): CommandResponse {
  const data = value.field('data');
  return {
    code: value.field('code').text(MAX_CODE_LENGTH),
    message: readMessage(value.field('message')),
    data: data.isAbsent ? undefined : readClientResponse(data),
    errorStackTrace: readMessage(value.field('errorStackTrace')),
  };
}

function readClientResponse(value: WireValue): ClientResponse {
  return {
    code: value.field('code').optionalText(MAX_CODE_LENGTH),
    message: readMessage(value.field('message')),
    bizInfos: readableBizInfos(value.field('bizInfos')),
  };
}

/** Message of any length up to the payload's: a stack trace is shortened where it is converted. */
function readMessage(value: WireValue): string {
  return value.optionalText(Number.POSITIVE_INFINITY) ?? '';
}

function readableBizInfos(value: WireValue): BizInfo[] {
  if (!value.isList) return [];
  return value.list(MAX_ENTRIES).flatMap((entry) => {
    try {
      return [readBizInfo(entry)];
    } catch (error) {
      if (error instanceof WireFault) return [];
      throw error;
    }
  });
}
