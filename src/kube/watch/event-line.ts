import type { CachedObject } from './informer-types.ts';

/** What an event of a watch is about, read without parsing it. */
export interface EventLine extends CachedObject {
  readonly type: 'MODIFIED' | 'DELETED';
}

/** The longest names that the API server takes, and the field names between them. */
const HEAD_BYTES = 1024;
/** Other names than those of the API server's built-in kinds are left to the parser. */
const HEAD =
  /^\{"type":"(?<type>MODIFIED|DELETED)","object":\{"kind":"\w+","apiVersion":"[\w./]+","metadata":\{"name":"(?<name>[\w.:-]+)",(?:"generateName":"[\w.:-]+",)?(?:"namespace":"(?<namespace>[\w-]+)",)?"uid":"(?<uid>[\w-]+)","resourceVersion":"(?<resourceVersion>\d+)"/;

/**
 * Reads the head of a line; undefined for additions, and where the fields are not in the order in which the API server
 * writes a built-in kind, the one of its Go struct: all of them come before everything that a user may have written.
 * Objects of a CustomResourceDefinition have an order that begins with their annotations.
 */
export function readEventLine(line: Buffer): EventLine | undefined {
  const found = HEAD.exec(line.toString('latin1', 0, HEAD_BYTES));
  if (found?.groups === undefined) return undefined;
  const { type, namespace = '', name = '', uid = '', resourceVersion = '' } = found.groups;
  return { type: type as EventLine['type'], namespace, name, uid, resourceVersion };
}
