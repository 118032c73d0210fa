import { createHash } from 'node:crypto';
import type { Express, Request, Response } from 'express';
import { ControllerError } from '../../../errors.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import type { Logger } from '../../../logger.ts';
import { LruMap } from '../../../lru-map.ts';
import type { Metrics } from '../../../metrics.ts';
import { refuse } from '../../../server/refuse.ts';
import { VERSION_SEPARATOR } from '../config/arguments.ts';
import type { CachedModuleConfig } from '../config/cached-module-config.ts';
import type { ConfigContents } from '../config/config-contents.ts';
import type { ConfigFormat } from '../config/formats.ts';
import { INSTANCE_NAME, MODULE_CONFIGS } from '../config/module-config.ts';
import type { CachedModule } from '../module/cached-module.ts';
import type { CatalogAccess } from './catalog-access.ts';
import {
  environmentText,
  fileText,
  formatFault,
  type PropertiesText,
  propertiesText,
  type ReadConfig,
} from './environment.ts';
import { type AdmittedRequest, type PathParameters, readApp, type Wanted } from './read-app.ts';
import { type SelectedConfig, selectConfigs } from './select-configs.ts';

export interface ConfigAppOptions {
  readonly configs: Informer<CachedModuleConfig>;
  readonly modules: Informer<CachedModule>;
  readonly contents: Pick<ConfigContents, 'contentOf'>;
  readonly access: Pick<CatalogAccess, 'of'>;
  readonly metrics: Pick<Metrics, 'catalogRequests'>;
  readonly logger: Logger;
}

export const CONFIG_PATH = '/config';
const FORM = `${CONFIG_PATH}/{namespace}/{names}/{profiles}[/{version}[/{file}]]`;
/** Most names, profiles and ids of versions in a path. */
const MAX_PARTS = 16;
const NAME = /^[0-9A-Za-z](?:[-.0-9A-Za-z]{0,251}[0-9A-Za-z])?$/;
const PROFILE = new RegExp(INSTANCE_NAME);
const VERSION = /^[0-9a-f-]{1,63}$/;
const TAG_DIGITS = 32;
/** Answers of about 2 KiB each: thousands. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;

const TYPES: Readonly<Record<ConfigFormat, string>> = {
  yaml: 'application/yaml',
  json: 'application/json',
  xml: 'application/xml',
  properties: 'text/plain',
  ini: 'text/plain',
  text: 'text/plain',
};

/** What somebody wants to read, by the path of the request. */
interface WantedConfigs {
  readonly names: readonly string[];
  readonly profiles: readonly string[];
  readonly versions: readonly string[];
  readonly label: string | undefined;
  readonly file: string | undefined;
}

/**
 * Configuration over HTTP in the form of Spring Cloud Config: `/config/{namespace}` is the address of a server, which has
 * `/{names}/{profiles}[/{version}]` for properties, and `/{names}/{profiles}/{version}/{file}` for a file as it is.
 */
export function configApp({ configs, modules, contents, ...shared }: ConfigAppOptions): Express {
  const cached = new LruMap<PropertiesText & { readonly text: string }>(MAX_CACHED_BYTES, ({ text }) => text.length);

  /** A text with a fault was not kept: nobody asks for it often. */
  function propertiesOf(format: ConfigFormat, content: string, key: string): PropertiesText {
    const known = cached.use(key);
    if (known !== undefined) return known;
    const made = propertiesText(format, content);
    if ('text' in made) cached.set(key, made);
    return made;
  }

  async function read({ config, version, isNamed }: SelectedConfig): Promise<ReadConfig> {
    const { name, spec } = config;
    const stored = await contents.contentOf(config, version);
    const { id, digest } = version;
    return { name, file: spec.file, format: spec.format, version: id, digest, stored, isNamed };
  }

  /** Whether the reader has this already, which costs no content. */
  function isKnown(request: Request<PathParameters>, response: Response, parts: unknown): boolean {
    const tag = `"${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, TAG_DIGITS)}"`;
    response.set('ETag', tag);
    const known = request.headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? [];
    if (!known.includes(tag)) return false;
    response.status(304).end();
    return true;
  }

  async function answer(admitted: AdmittedRequest<WantedConfigs>): Promise<void> {
    const { response, namespace, reader, wanted } = admitted;
    const readable = configs.byIndex('namespace', namespace).filter(({ spec }) => reader.mayRead(spec.target.app));
    const found = selectConfigs({
      ...wanted,
      configs: readable,
      inForce: (name) => modules.get(`${namespace}/${name}`)?.status?.release?.configs,
    });
    if ('missing' in found) return refuse(response, 404, found.missing);
    try {
      if (wanted.file === undefined) await answerProperties(admitted, found.selected);
      else await answerFile(admitted, wanted.file, found.selected);
    } catch (error) {
      if (!(error instanceof ControllerError) || error.code !== 'Catalog.ContentLost') throw error;
      refuse(response, 503, error.message);
    }
  }

  async function answerProperties(
    { request, response, namespace, wanted }: AdmittedRequest<WantedConfigs>,
    all: readonly SelectedConfig[],
  ): Promise<void> {
    const { names, profiles, label } = wanted;
    // An application may have other files besides.
    const selected = all.filter(({ config, isNamed }) => isNamed || faultOf(config) === undefined);
    const fault = selected.map(({ config }) => faultOf(config)).find((one) => one !== undefined);
    if (fault !== undefined) return refuse(response, 404, fault);
    if (isKnown(request, response, [names, profiles, label, selected.map(tagOf)])) return;
    const files = await inTurn(selected, read);
    const body = environmentText({ name: names.join(','), namespace, profiles, label, configs: files, propertiesOf });
    if ('fault' in body) return refuse(response, 404, body.fault);
    response.type('application/json').send(body.text);
  }

  async function answerFile(
    { request, response, wanted: { profiles } }: AdmittedRequest<WantedConfigs>,
    file: string,
    all: readonly SelectedConfig[],
  ): Promise<void> {
    const one = all.findLast(({ config }) => config.spec.file === file);
    if (one === undefined) {
      const files = all.map(({ config }) => config.spec.file).join(', ');
      return refuse(response, 404, `there is no file ${file}: there are ${files}`);
    }
    if (isKnown(request, response, [profiles, file, tagOf(one)])) return;
    const text = fileText(await read(one), profiles);
    response.set('X-Content-Type-Options', 'nosniff').type(TYPES[one.config.spec.format]).send(text);
  }

  return readApp({
    path: CONFIG_PATH,
    routes: ['/:namespace/:names/:profiles{/:version}{/:file}'],
    form: FORM,
    kind: MODULE_CONFIGS,
    caches: [configs, modules],
    ...shared,
    wantedIn,
    answer,
  });
}

function faultOf({ name, spec }: CachedModuleConfig): string | undefined {
  return formatFault({ name, file: spec.file, format: spec.format });
}

/** What the answer with a file depends on. */
function tagOf({ config, version }: SelectedConfig): unknown {
  return [config.name, config.uid, version.id, version.digest];
}

async function inTurn(selected: readonly SelectedConfig[], read: (one: SelectedConfig) => Promise<ReadConfig>) {
  const found: ReadConfig[] = [];
  for (const one of selected) found.push(await read(one));
  return found;
}

function wantedIn({ params, query }: Request<PathParameters>): Wanted<WantedConfigs> {
  // As the server of Spring has it: without a label, a file is the last part.
  const isUnlabelled = query.useDefaultLabel !== undefined && params.file === undefined;
  const [label, file] = isUnlabelled ? [undefined, params.version] : [params.version, params.file];
  const names = params.names?.split(',') ?? [];
  const profiles = params.profiles?.split(',') ?? [];
  const versions = label?.split(VERSION_SEPARATOR) ?? [];
  const checks = [
    [names, NAME, 'names', 'names of ModuleConfigs, of an application, or of a Module'],
    [profiles, PROFILE, 'profiles', '`default`, or names of instances'],
    [versions, VERSION, 'version', `ids of versions, with \`${VERSION_SEPARATOR}\` between them`],
  ] as const;
  for (const [parts, pattern, part, what] of checks) {
    if (parts.length <= MAX_PARTS && parts.every((one) => pattern.test(one))) continue;
    return { fault: `${part} of ${FORM} must be ${what}, ${MAX_PARTS} at most` };
  }
  return { wanted: { names, profiles, versions, label, file } };
}
