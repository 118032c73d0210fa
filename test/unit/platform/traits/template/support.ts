import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import {
  parseTemplate,
  renderTemplate,
  type TemplateFault,
} from '../../../../../src/platform/traits/template/template.ts';
import type { Verdict } from '../../../../support/go-tools/template-judge.ts';

/** Name that the templates of the tests have. */
export const NAME = 'trait';

/** A template of the corpus, with the data and, if it is refused where Go accepts it, the code of its fault. */
export interface Case {
  readonly template: string;
  readonly data: unknown;
  readonly refused: string | undefined;
}

type Written = string | { readonly template: string; readonly data?: unknown; readonly refused?: string };

const FOLDER = new URL('./corpus/', import.meta.url);
export const DATA: unknown = parse(readFileSync(new URL('./data.yaml', import.meta.url), 'utf8'));

/** Cases of the files of the corpus, by their names. */
export function corpus(): [file: string, cases: Case[]][] {
  return readdirSync(FOLDER).map((file) => [file, casesOf(parse(readFileSync(new URL(file, FOLDER), 'utf8')))]);
}

function casesOf(written: readonly Written[]): Case[] {
  return written.map((entry) => {
    const { template, refused, ...rest } = typeof entry === 'string' ? { template: entry } : entry;
    return { template, refused, data: 'data' in rest ? rest.data : DATA };
  });
}

export type Outcome = { readonly text: string } | { readonly fault: TemplateFault };

export function run(template: string, data: unknown): Outcome {
  const parsed = parseTemplate(NAME, template);
  return 'fault' in parsed ? parsed : renderTemplate(parsed.template, data);
}

const STEPS: Readonly<Record<string, string>> = { Syntax: 'parse', Execution: 'execution' };

/** What is different from Go. Undefined: nothing, or the template is refused by choice. */
export function differenceOf(outcome: Outcome, verdict: Verdict): string | undefined {
  if ('text' in outcome) {
    if (verdict.failed !== undefined) return `accepted: ${JSON.stringify(outcome.text)}, Go: ${verdict.message}`;
    const isSame = verdict.text.equals(Buffer.from(outcome.text, 'utf8'));
    return isSame ? undefined : `text: ${JSON.stringify(outcome.text)}, Go: ${JSON.stringify(verdict.text.toString())}`;
  }
  const { code, message } = outcome.fault;
  const step = STEPS[code];
  if (step === undefined || step === verdict.failed) return undefined;
  const go = verdict.failed === undefined ? JSON.stringify(verdict.text.toString()) : verdict.message;
  return `${code}: ${message}, Go: ${go}`;
}
