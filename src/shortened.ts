/** At most `maxLength` characters, cut and marked with `…` where there are more. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}
