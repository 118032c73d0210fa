import { SaxesParser } from 'saxes';
import { Budget, FormatError } from './value.ts';

/** Throws a FormatError unless the file is well-formed XML, without a document type and so without entities of its own. */
export function checkXml(text: string): void {
  const parser = new SaxesParser({ xmlns: true });
  const budget = new Budget();
  let depth = 0;
  parser.on('error', ({ message }) => {
    // The message begins with the place.
    throw new FormatError(parser.position, message.replace(/^(\d+:\d+: )+/, ''));
  });
  parser.on('doctype', () => {
    throw new FormatError(parser.position, 'a document type is refused: it can define entities and name other files');
  });
  parser.on('opentag', ({ attributes }) => {
    depth++;
    budget.check(parser.position, depth);
    budget.add(parser.position, 1 + Object.keys(attributes).length);
  });
  parser.on('closetag', () => void depth--);
  parser.write(text).close();
}
