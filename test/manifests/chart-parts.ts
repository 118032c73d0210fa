import { MODULE_TENANCY_CRD } from '../../src/kinds/module-tenancy.ts';
import { PLATFORM_GROUP } from '../../src/labels.ts';
import type { KindAccess } from '../../src/reconcile/access.ts';
import { accessOf, type ControllerDefinition } from '../../src/reconcile/controller-definition.ts';
import type { WebhookPath, WebhookRule } from '../../src/reconcile/webhooks.ts';
import { ARCHITECTURE_LABELS, NODE_ANNOTATIONS, type NodeFacts, nodeLabelsOf } from '../../src/vnode/node-object.ts';
import { CORE_NAME, DEFINITIONS, PLATFORM } from './definitions.ts';

type Definition = Pick<ControllerDefinition<never>, 'name' | 'access' | 'leads' | 'crds' | 'events' | 'webhooks'>;

/** A rule of a role, with the controllers that need it. */
interface Rule extends KindAccess {
  readonly uses: readonly string[];
  readonly controllers: readonly string[];
}

const FACTS: NodeFacts = {
  base: { identity: '', name: '', version: '', clusterName: '', ip: '', hostName: '', port: 0 },
  tunnel: 'mqtt_tunnel_provider',
  env: '',
  kubeletVersion: '',
  health: undefined,
  reachability: 'Reachable',
  basePod: undefined,
  hasAnswered: false,
};
/** Keys of the labels and annotations that the core writes to a Node, or takes off. */
const NODE_KEYS = [...Object.keys(nodeLabelsOf(FACTS)), ...ARCHITECTURE_LABELS, ...NODE_ANNOTATIONS].toSorted();
const OTHER_FACTS: NodeFacts = {
  ...FACTS,
  base: { identity: 'x', name: 'x', version: 'x', clusterName: 'x', ip: '', hostName: 'x', port: 0 },
  tunnel: 'http_tunnel_provider',
  env: 'x',
};
const otherLabels = nodeLabelsOf(OTHER_FACTS);
/** Labels whose value is that of no base: other components read orders in them. */
const FIXED_NODE_LABELS = Object.entries(nodeLabelsOf(FACTS))
  .filter(([key, value]) => otherLabels[key] === value)
  .toSorted();

const HEADER = '{{- /* Made by `npm run manifests` from the definitions of the controllers. */ -}}';

/** The templates that the roles and webhook configurations of the chart include. */
export function chartParts(): string {
  const core = DEFINITIONS.filter(({ name }) => name === CORE_NAME);
  const namespaces = [...new Set(core.flatMap(accessOf).flatMap(({ namespace }) => namespace ?? []))];
  return [
    HEADER,
    define('module-controller.clusterRules', rulesOf(core, undefined).map(ruleText)),
    ...namespaces.map((namespace) =>
      define(`module-controller.rules.${namespace}`, rulesOf(core, namespace).map(ruleText)),
    ),
    define('module-platform.clusterRules', rulesOf(PLATFORM, undefined).map(conditionalRule)),
    ...optInRoles(PLATFORM).map((role) =>
      define(`${role}.rules`, rulesOf(PLATFORM, undefined, role).map(conditionalRule)),
    ),
    define('module-platform.ownRules', rulesOf(PLATFORM, 'own').map(conditionalRule)),
    define(
      'module-controller.nodeKeys',
      NODE_KEYS.map((key) => `- ${key}`),
    ),
    define(
      'module-controller.fixedNodeLabels',
      FIXED_NODE_LABELS.map((label) => `- ${JSON.stringify(label)}`),
    ),
    define(
      'module-platform.crdNames',
      PLATFORM.flatMap(({ crds = [] }) => crds.map(({ crd }) => `- ${crd.metadata.name}`)).toSorted(),
    ),
    define('module-platform.editRules', [userRule(userKinds(PLATFORM, 'edit'), EDIT_VERBS)]),
    define('module-platform.viewRules', [userRule([...userKinds(PLATFORM, 'view'), TENANCIES].toSorted(), VIEW_VERBS)]),
    ...(['mutate', 'validate'] as const).map((path) =>
      define(
        `module-platform.webhooks.${path}`,
        PLATFORM.flatMap((definition) => webhooksOf(definition, path)),
      ),
    ),
  ].join('\n');
}

function optInRoles(definitions: readonly Definition[]): string[] {
  return [...new Set(definitions.flatMap(({ access }) => access.flatMap(({ optInRole }) => optInRole ?? [])))];
}

function define(name: string, blocks: readonly string[]): string {
  return [`{{- define "${name}" -}}`, ...blocks, '{{- end }}', ''].join('\n');
}

/**
 * Equal rules of several controllers are one. `namespace` undefined: of the whole cluster. `role`: of namespaces in which
 * this role is bound.
 */
function rulesOf(definitions: readonly Definition[], namespace: string | undefined, role?: string): Rule[] {
  const rules = new Map<string, Rule>();
  for (const definition of definitions) {
    for (const access of accessOf(definition).filter((one) => one.namespace === namespace && one.optInRole === role)) {
      const { kind, subresource, verbs, names } = access;
      // CRDs of several controllers differ in names only.
      const key = JSON.stringify([kind.group, kind.plural, subresource, verbs, names]);
      const { uses = [], controllers = [] } = rules.get(key) ?? {};
      rules.set(key, {
        ...access,
        uses: [...new Set([...uses, access.use])],
        controllers: [...controllers, definition.name],
      });
    }
  }
  return [...rules.values()];
}

function ruleText({ kind, subresource, verbs, names, uses }: Rule): string {
  const resource = subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`;
  return [
    ...uses.flatMap((use) => wrapped(use)),
    `- apiGroups: [${kind.group === '' ? '""' : kind.group}]`,
    `  resources: [${resource}]`,
    ...(names === undefined ? [] : [`  resourceNames: [${names.join(', ')}]`]),
    `  verbs: [${verbs.join(', ')}]`,
  ].join('\n');
}

function conditionalRule(rule: Rule): string {
  const isOn = isOneOn(rule.controllers);
  const condition =
    rule.unless === undefined ? isOn : `and (${isOn}) (not (index .Values.platform.config "${rule.unless}"))`;
  return [`{{- if ${condition} }}`, ruleText(rule), '{{- end }}'].join('\n');
}

function isOneOn(controllers: readonly string[]): string {
  const terms = controllers.map((name) => `has "${name}" .Values.platform.controllers`);
  return terms.length === 1 ? (terms[0] ?? '') : `or ${terms.map((term) => `(${term})`).join(' ')}`;
}

const EDIT_VERBS = 'get, list, watch, create, update, patch, delete, deletecollection';
const VIEW_VERBS = 'get, list, watch';
const TENANCIES = MODULE_TENANCY_CRD.spec.names.plural;

/** `edit`: kinds that users write. `view`: all. With their scale, where they have one. */
function userKinds(definitions: readonly Definition[], right: 'edit' | 'view'): string[] {
  return definitions
    .flatMap(({ crds = [] }) => crds)
    .filter(({ usersMay }) => right === 'view' || usersMay === right)
    .flatMap(({ crd: { spec } }) => {
      const hasScale = spec.versions.some(
        ({ subresources }) => 'scale' in ((subresources as object | undefined) ?? {}),
      );
      return [spec.names.plural, ...(hasScale ? [`${spec.names.plural}/scale`] : [])];
    })
    .toSorted();
}

function userRule(resources: readonly string[], verbs: string): string {
  return [`- apiGroups: [${PLATFORM_GROUP}]`, `  resources: [${resources.join(', ')}]`, `  verbs: [${verbs}]`].join(
    '\n',
  );
}

function webhooksOf({ name: controller, webhooks = [] }: Definition, path: WebhookPath): string[] {
  return webhooks
    .filter((rule) => rule.path === path)
    .map((rule) => [`{{- if ${isOneOn([controller])} }}`, webhookText(rule), '{{- end }}'].join('\n'));
}

function webhookText(rule: WebhookRule): string {
  const { name, path, kind, operations, failurePolicy, labels, use } = rule;
  return [
    ...wrapped(use),
    `- name: ${name}.${PLATFORM_GROUP}`,
    '  admissionReviewVersions: [v1]',
    '  sideEffects: None',
    `  failurePolicy: ${failurePolicy}`,
    '  matchPolicy: Equivalent',
    ...(path === 'mutate' ? ['  reinvocationPolicy: IfNeeded'] : []),
    '  timeoutSeconds: 5',
    '  clientConfig:',
    `    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /${path} }`,
    ...(labels === undefined
      ? []
      : [
          '  objectSelector:',
          '    matchLabels:',
          ...Object.entries(labels).map(([key, value]) => `      ${key}: ${value}`),
        ]),
    ...conditionsText(rule),
    '  rules:',
    `    - apiGroups: [${kind.group === '' ? '""' : kind.group}]`,
    `      apiVersions: [${kind.version}]`,
    `      resources: [${kind.plural}]`,
    `      operations: [${operations.join(', ')}]`,
    `      scope: ${kind.isNamespaced ? 'Namespaced' : 'Cluster'}`,
  ].join('\n');
}

function conditionsText({ conditions }: WebhookRule): string[] {
  if (conditions === undefined) return [];
  if (typeof conditions === 'string') return ['  matchConditions:', `    {{- include "${conditions}" . | nindent 4 }}`];
  return [
    '  matchConditions:',
    ...conditions.flatMap(({ name, expression }) => [
      `    - name: ${name}`,
      `      expression: ${JSON.stringify(expression)}`,
    ]),
  ];
}

/** A comment of lines of at most 120 characters in the finished manifest. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + word.length < 112) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`# ${word}`);
  }
  return lines;
}
