/** Ways of writing that readers stumble over, and what to write instead. */
export interface Pattern {
  readonly name: string;
  readonly found: RegExp;
  readonly instead: string;
}

export const PATTERNS: readonly Pattern[] = [
  {
    name: 'clause without a subject',
    found:
      /\b(what|who) (is|was|has|had|are|were) (to|been|led|wanted|kept|gone|left|said|asked|heard|lost|new|free|due|there|ours|said|under)\b/gi,
    instead: 'name the thing: "the module that is installed"',
  },
  { name: 'tell', found: /\b(tell|tells|told|telling)\b/gi, instead: 'report, publish, log, answer, show' },
  {
    name: 'so long, so many',
    found: /\bso (long|many|much|often|late|soon)\b(?! as)/gi,
    instead: 'name the quantity and its unit',
  },
  {
    name: 'each 10 s',
    found: /\b(each|again each) (\d+(\.\d+)? ?(s|ms|min|h)|second|minute|half)\b/gi,
    instead: 'every 10 s',
  },
  { name: 'anew', found: /\banew\b/gi, instead: 'again' },
  { name: 'begin of', found: /\bbegin of\b/gi, instead: 'start of' },
  {
    name: 'we and he',
    found: /\b(we|us|our|ours|ourselves|he|his|him|whom|whose turn)\b/gi,
    instead: 'the controller, this replica, it',
  },
  { name: 'stopped to', found: /\bstop(s|ped)? to (answer|renew|send|speak)\b/gi, instead: 'stopped answering' },
  {
    name: 'private coinage',
    found: /\b(isToKeep|isToGo|giveBack|oweRemoval|debts|isOut|isTold|tellFenced|door)\b/g,
    instead: 'a term of the field',
  },
  {
    name: 'code of an outside document',
    found: /\b(?!V8\b)[VDETS]\d{1,2}\b/g,
    instead: 'the reason in half a sentence',
  },
  {
    // "Whether …" is usual for a boolean.
    name: 'doc comment without a subject',
    found: /^\/\*\*[\s*]*(Of|As|For|Where|While|Besides|By|Until|Without|Behind)\b/g,
    instead: 'what it is: "Name of the Lease.", "Maximum size of an answer."',
  },
];

/** How often each pattern is found, by its name. */
export function countsOf(texts: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    PATTERNS.map(({ name, found }) => [name, texts.reduce((sum, text) => sum + [...text.matchAll(found)].length, 0)]),
  );
}
