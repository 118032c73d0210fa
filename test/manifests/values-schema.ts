import { rules } from '../../src/config/rules.ts';
import { VARIABLES, type Variable, type VariableName } from '../../src/config/variables.ts';

import { PLATFORM } from './definitions.ts';

type Schema = Readonly<Record<string, unknown>>;

/** They come from the existing Secret: everybody may read a ConfigMap. */
export const SECRET_VARIABLES: readonly VariableName[] = ['MQTT_PASSWORD', 'HTTP_TUNNEL_TOKEN', 'MEMBER_TOKEN'];
/** The chart sets them itself. */
const OF_THE_POD: readonly VariableName[] = [
  'KUBECONFIG',
  'CLIENT_ID',
  'CONTROLLERS',
  'POD_NAME',
  'POD_NAMESPACE',
  'POD_IP',
];
const isOfPlatform = (name: VariableName): boolean => PLATFORM.some(({ variables: own = [] }) => own.includes(name));
const OF_BOTH: readonly VariableName[] = ['LOG_LEVEL', 'HEALTH_PROBE_PORT', 'METRICS_PORT'];

export function variablesOfCore(): VariableName[] {
  const others = [...SECRET_VARIABLES, ...OF_THE_POD];
  return namesOf((name) => !others.includes(name) && !isOfPlatform(name));
}

export function variablesOfPlatform(): VariableName[] {
  return namesOf((name) => isOfPlatform(name) || OF_BOTH.includes(name));
}

function namesOf(fits: (name: VariableName) => boolean): VariableName[] {
  return (Object.keys(VARIABLES) as VariableName[]).filter(fits);
}

/** What can be written of a variable in YAML; the controller checks the rest at its start. */
function variable(name: VariableName): Schema {
  const { rule, meaning }: Variable<unknown> = VARIABLES[name];
  const description = meaning;
  if (rule === rules.boolean) return { description, enum: [true, false, 'true', 'false', '1', '0', null] };
  const [, minimum, maximum] = /^a whole number from (\d+) to (\d+)$/.exec(rule.text) ?? [];
  if (minimum !== undefined && maximum !== undefined) {
    const number = { type: 'integer', minimum: Number(minimum), maximum: Number(maximum) };
    return { description, anyOf: [number, { type: 'string', pattern: '^\\d{1,9}$' }, { type: 'null' }] };
  }
  const words = [...rule.text.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
  if (words.length > 0 && words.every((word) => rule.parse(word ?? '') === word) && /^(`[^`]+`(, )?)+$/.test(rule.text))
    return { description, enum: [...words, null] };
  // An empty one counts as not set.
  const pattern = rule.pattern && { pattern: `^$|${rule.pattern}` };
  return { description, type: ['string', 'number', 'null'], ...pattern };
}

function variables(names: readonly VariableName[]): Schema {
  return object(Object.fromEntries(names.map((name) => [name, variable(name)])));
}

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

const TEXT: Schema = { type: 'string' };
const BOOLEAN: Schema = { type: 'boolean' };
const COUNT: Schema = { type: 'integer', minimum: 0 };
const NAME: Schema = { type: 'string', pattern: '^$|^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$' };
/** A part of a Pod, which the API server checks. */
const OPEN_OBJECT: Schema = { type: 'object' };
const OBJECTS: Schema = { type: 'array', items: { type: 'object' } };
const TEXTS: Schema = { type: 'object', additionalProperties: { type: 'string' } };
const NETWORKS: Schema = { type: 'array', items: { type: 'string', pattern: '^[0-9a-fA-F.:]+/\\d{1,3}$' } };
const SWITCH = object({ enabled: BOOLEAN });

const ON_PODS = {
  replicas: COUNT,
  priorityClassName: NAME,
  resources: OPEN_OBJECT,
  podAnnotations: TEXTS,
  nodeSelector: TEXTS,
  tolerations: OBJECTS,
  affinity: OPEN_OBJECT,
  extraEnv: OBJECTS,
  extraVolumes: OBJECTS,
  extraVolumeMounts: OBJECTS,
};

/** The schema of the chart's values, with the variables that the program knows. */
export function valuesSchema(): Schema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart module-controller',
    ...object({
      global: OPEN_OBJECT,
      image: object({
        repository: TEXT,
        tag: TEXT,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: OBJECTS,
      nameOverride: { type: 'string', pattern: '^$|^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$' },
      config: variables(variablesOfCore()),
      existingSecret: NAME,
      runAsUser: { type: ['integer', 'null'], minimum: 1 },
      mqttTls: object({ caSecret: NAME, clientSecret: NAME }),
      ...ON_PODS,
      confinement: SWITCH,
      flowSchemas: SWITCH,
      podDisruptionBudget: SWITCH,
      networkPolicy: object({
        enabled: BOOLEAN,
        baseNetworks: NETWORKS,
        apiServerNetworks: NETWORKS,
        balancerNetworks: NETWORKS,
        metricsFrom: OBJECTS,
        egress: object({
          enabled: BOOLEAN,
          apiServerNetworks: NETWORKS,
          apiServerPorts: { type: 'array', items: { type: 'integer', minimum: 1, maximum: 65535 } },
          brokerNetworks: NETWORKS,
          dns: OBJECTS,
        }),
      }),
      monitoring: object({
        podMonitor: object({
          enabled: BOOLEAN,
          interval: { type: 'string', pattern: '^\\d+(ms|s|m)$' },
          labels: TEXTS,
        }),
        prometheusRule: object({ enabled: BOOLEAN, labels: TEXTS, runbookBaseUrl: TEXT }),
        dashboard: object({ enabled: BOOLEAN, labels: TEXTS }),
      }),
      platform: object({
        enabled: BOOLEAN,
        controllers: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { enum: PLATFORM.map(({ name }) => name) },
        },
        config: variables(variablesOfPlatform()),
        ...ON_PODS,
      }),
    }),
  };
}
