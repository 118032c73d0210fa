import type { TSchema } from 'typebox';
import { type Crd, SCHEMA_ANNOTATION } from '../kube/crds.ts';
import type { ResourceKind } from '../kube/resource.ts';
import { type CelRule, openApiOf, rules } from './schema.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  /** 1: with `-o wide` only. Default 0. */
  readonly priority?: number;
}

export interface CrdOptions {
  readonly kind: ResourceKind;
  readonly shortNames: readonly string[];
  /** Groups of kinds that list it too, such as `all` of `kubectl get all`. Default: none. */
  readonly categories?: readonly string[];
  readonly description: string;
  /** To be raised with every change of the schema. */
  readonly schemaRevision: number;
  readonly spec: TSchema;
  readonly status: TSchema;
  /** Subresources besides the status. */
  readonly subresources?: Readonly<Record<string, unknown>>;
  /** Before the age. */
  readonly columns: readonly PrinterColumn[];
  /** About the whole object. */
  readonly rules?: readonly CelRule[];
}

/** The CRD of a namespaced kind with one version, as a controller installs it. */
export function crdOf({ kind, schemaRevision, subresources, columns, ...options }: CrdOptions): Crd {
  const { description, spec, status, shortNames, categories, rules: about = [] } = options;
  const { kind: name, plural } = kind;
  return {
    metadata: {
      name: `${kind.plural}.${kind.group}`,
      annotations: { [SCHEMA_ANNOTATION]: String(schemaRevision) },
    },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: { kind: name, plural, singular: name.toLowerCase(), shortNames, ...(categories && { categories }) },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {}, ...subresources },
          additionalPrinterColumns: [
            ...columns,
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description,
              required: ['spec'],
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec: openApiOf(spec),
                status: openApiOf(status),
              },
              ...(about.length > 0 && rules(...about)),
            },
          },
        },
      ],
    },
  };
}
