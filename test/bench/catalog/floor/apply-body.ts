import { createHash } from 'node:crypto';
import { CATALOG_ANNOTATION, type ComposeInput, compose } from '../../../../src/platform/catalog/compose/compose.ts';

/** Stands where the value that changes is. */
const PLACE = 987_654_321;
const DIGEST_LENGTH = 16;

/** The body that the catalog applies for a Module, byte by byte. It is made once and filled in for each change. */
export class ApplyBody {
  readonly #head: string;
  readonly #beforeValue: string;
  readonly #afterValue: string;

  private constructor(parts: { head: string; beforeValue: string; afterValue: string }) {
    this.#head = parts.head;
    this.#beforeValue = parts.beforeValue;
    this.#afterValue = parts.afterValue;
  }

  static of(input: ComposeInput): ApplyBody {
    const { spec } = input.module;
    const strategy = {
      ...spec.deploy?.strategy,
      rollingUpdate: { ...spec.deploy?.strategy?.rollingUpdate, maxSurge: PLACE },
    };
    const module = { ...input.module, spec: { ...spec, deploy: { ...spec.deploy, strategy } } };
    const composition = compose({ ...input, module });
    if ('fault' in composition) throw new Error(`${module.name}: ${composition.fault}`);
    const { annotations = {} } = composition.workload.metadata;
    const mark = markOf(annotations[CATALOG_ANNOTATION.digest] ?? '');
    const [head, rest] = halvesOf(JSON.stringify(composition.workload), mark);
    const [beforeValue, afterValue] = halvesOf(rest, `"maxSurge":${PLACE}`);
    return new ApplyBody({ head, beforeValue: `${beforeValue}"maxSurge":`, afterValue });
  }

  /** The body with that value. */
  with(value: number): string {
    return `${this.#head}${markOf(this.digestOf(value))}${this.#beforeValue}${value}${this.#afterValue}`;
  }

  /** The digest that the body with that value has. */
  digestOf(value: number): string {
    const undigested = `${this.#head}${this.#beforeValue}${value}${this.#afterValue}`;
    return createHash('sha256').update(undigested).digest('hex').slice(0, DIGEST_LENGTH);
  }
}

function markOf(digest: string): string {
  return `,"annotations":{"${CATALOG_ANNOTATION.digest}":"${digest}"}`;
}

/** The parts before and behind the only place of `mark`. */
function halvesOf(text: string, mark: string): readonly [string, string] {
  const [before, behind, ...more] = text.split(mark);
  if (before === undefined || behind === undefined || more.length > 0) throw new Error(`${mark}: not once in ${text}`);
  return [before, behind];
}
