import { annotationFaultsOf, labelFaultsOf } from '../../kinds/label-syntax.ts';
import { versionOf } from '../../kinds/pod-defaults.ts';
import { type CheckedPodSpec, podSpecFaultsOf } from '../../kinds/pod-faults.ts';
import { typeFaultsOf } from '../../kinds/pod-form.ts';
import { VERSION_ENV } from '../../labels.ts';
import type { ModuleTemplate } from './module-deployment.ts';

const METADATA = 'spec.template.metadata';
const SPEC = 'spec.template.spec';

/** Why the API server would refuse Pods of the template, or no base could take them. */
export function templateFaultsOf(template: ModuleTemplate): string[] {
  const typeFaults = templateTypeFaultsOf(template);
  if (typeFaults.length > 0) return typeFaults;
  const { labels, annotations = {} } = template.metadata;
  return [
    ...labelFaultsOf(labels, `${METADATA}.labels`),
    ...annotationFaultsOf(annotations, `${METADATA}.annotations`),
    ...podSpecFaultsOf(template.spec as unknown as CheckedPodSpec, SPEC),
    ...versionFaults(template),
  ];
}

/** Parts of a template of which the code cannot read anything. */
export function templateTypeFaultsOf({ metadata, spec }: ModuleTemplate): string[] {
  return [
    ...textFaults(metadata?.labels, `${METADATA}.labels`),
    ...(metadata?.annotations == null ? [] : textFaults(metadata.annotations, `${METADATA}.annotations`)),
    ...typeFaultsOf('PodSpec', spec, SPEC),
  ];
}

function textFaults(texts: unknown, path: string): string[] {
  if (typeof texts !== 'object' || texts === null) return [`${path}: must be an object`];
  return Object.entries(texts)
    .filter(([, value]) => typeof value !== 'string')
    .map(([key]) => `${path}[${JSON.stringify(key)}]: must be a text`);
}

function versionFaults({ metadata, spec }: ModuleTemplate): string[] {
  const isOnly = spec.containers.length === 1;
  return spec.containers
    .filter((container) => !versionOf(container, metadata.labels, isOnly))
    .map(
      ({ name }) =>
        `${SPEC}.containers[${name}].env: ${VERSION_ENV} is missing: write the version of the module there, or name the jar ${name}-<version>-ark-biz.jar`,
    );
}
