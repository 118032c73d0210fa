import type { NodeSelectorTerm, ObjectMeta, PodObject } from '../kube/objects.ts';
import { ENV_LABEL, TAINT } from '../labels.ts';

type PodSpec = PodObject['spec'];

interface TemplateParts {
  readonly metadata: Pick<ObjectMeta, 'labels'>;
  readonly spec: PodSpec;
}

/**
 * ENVs that a Pod, or the template of one, names: in its label, its node selector, its tolerations and its required
 * node affinity. Where several of these name some, only those that all of them leave. Empty where they exclude each
 * other: the policy `module-pods` refuses such a Pod. Undefined where nothing names an ENV.
 */
export function envsOf(pod: TemplateParts): readonly string[] | undefined {
  return common([envsBesideTolerations(pod), tolerated(pod.spec)]);
}

/** The same without the tolerations, to which a template is completed. */
export function envsBesideTolerations({ metadata, spec }: TemplateParts): readonly string[] | undefined {
  const values = [metadata.labels?.[ENV_LABEL], spec.nodeSelector?.[ENV_LABEL]];
  return common([...values.map((env) => (env ? [env] : undefined)), ofAffinity(spec)]);
}

/** Undefined where they tolerate all, or name none. */
function tolerated({ tolerations = [] }: PodSpec): readonly string[] | undefined {
  const toleratesAll = tolerations.some(
    ({ key = '', operator, effect = '' }) =>
      ['', TAINT.env].includes(key) && operator === 'Exists' && ['', 'NoExecute'].includes(effect),
  );
  const named = tolerations.filter(({ key }) => key === TAINT.env).map(({ value = '' }) => value);
  return toleratesAll || named.length === 0 ? undefined : named;
}

/** Undefined where one of its terms leaves all. */
function ofAffinity({ affinity }: PodSpec): readonly string[] | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const left = terms.map(ofTerm);
  const named = left.flatMap((envs) => (envs === undefined ? [] : [...envs]));
  return left.length === 0 || left.includes(undefined) ? undefined : [...new Set(named)];
}

function ofTerm({ matchExpressions }: NodeSelectorTerm): readonly string[] | undefined {
  const ofEnv = (matchExpressions ?? []).filter(({ key, operator }) => key === ENV_LABEL && operator === 'In');
  return common(ofEnv.map(({ values }) => values ?? []));
}

/** What all lists have; those that are undefined have everything. */
function common(lists: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const [first, ...others] = lists.filter((list) => list !== undefined);
  return first && [...new Set(first)].filter((value) => others.every((list) => list.includes(value)));
}
