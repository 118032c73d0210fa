/** At most `maxLength` characters, cut and marked with `…` where there are more. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

/**
 * All but letters, digits and what names and versions are written with: control characters, which a terminal obeys,
 * invisible ones and changes of the writing direction, and markup of HTML, Markdown or templates.
 */
const NOT_PLAIN = /[^\p{L}\p{M}\p{N} ._:+,~@/()=-]+/gu;

/** What somebody else says of itself, as it may be shown to people: one line of plain text, shortened. */
export function plainLine(text: string, maxLength: number): string {
  const plain = text.replace(NOT_PLAIN, ' ').replace(/ {2,}/g, ' ').trim();
  return shortened(plain, maxLength).toWellFormed();
}
