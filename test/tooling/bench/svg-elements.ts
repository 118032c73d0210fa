export interface SvgElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
}

const TAG = /^<(\/?)([\w-]+)((?:\s+[\w-]+="[^"<&]*")*)(\/?)>$/;

/** Throws at what is not well-formed. Knows no more of XML than a picture has. */
export function elementsOf(xml: string): SvgElement[] {
  const open: SvgElement[] = [];
  const all: SvgElement[] = [];
  for (const part of xml.match(/<[^>]*>?|[^<]+/g) ?? []) {
    const [isTag, isEnd, name = '', attributes = '', isEmpty] = TAG.exec(part) ?? [];
    if (!isTag) addText(part, open.at(-1));
    else if (isEnd) close(name, open);
    else {
      const element = { name, attributes: pairsOf(attributes), text: '' };
      all.push(element);
      if (!isEmpty) open.push(element);
    }
  }
  if (open.length > 0) throw new Error(`${open.map(({ name }) => name)} do not end`);
  return all;
}

function addText(text: string, inside: SvgElement | undefined): void {
  if (/<|&(?!(amp|lt|gt|quot);)/.test(text)) throw new Error(`not well-formed: ${text}`);
  if (inside) inside.text += text;
  else if (text.trim() !== '') throw new Error(`outside of everything: ${text}`);
}

function close(name: string, open: SvgElement[]): void {
  if (open.pop()?.name !== name) throw new Error(`</${name}> ends nothing`);
}

function pairsOf(attributes: string): Record<string, string> {
  return Object.fromEntries([...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
}
