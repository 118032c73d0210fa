interface Version {
  readonly uid: string;
  readonly resourceVersion: string;
}

/**
 * Writes of this process whose answers the cache has taken, and whose events the watch has yet to bring. Such an event
 * says nothing new, so its line need not be parsed.
 */
export class OwnWrites {
  /** UIDs by resource version. Emptied by the events, and by each list. */
  readonly #uids = new Map<string, string>();

  add({ uid, resourceVersion }: Version): void {
    this.#uids.set(resourceVersion, uid);
  }

  /** The resource version of the event, if it is that of one of these writes, which is then forgotten. */
  take(line: Buffer): string | undefined {
    const found = this.#uids.size === 0 ? undefined : modifiedVersionOf(line);
    if (found === undefined || this.#uids.get(found.resourceVersion) !== found.uid) return undefined;
    this.#uids.delete(found.resourceVersion);
    return found.resourceVersion;
  }

  clear(): void {
    this.#uids.clear();
  }
}

const MODIFIED = Buffer.from('{"type":"MODIFIED","object":{"kind":"');
const METADATA = Buffer.from('"metadata":{"name":"');
const UID = Buffer.from('"uid":"');
const VERSION = Buffer.from('"resourceVersion":"');
const QUOTE = 0x22;
/** Type and kind come before the metadata, and nothing else does. */
const METADATA_WITHIN = 200;

/**
 * What a MODIFIED event is about, read without parsing. undefined where the fields are not in the order in which the API
 * server writes a built-in kind, the one of its Go struct: name, namespace, UID and version come before everything that
 * a user may have written. Objects of a CustomResourceDefinition have an order that begins with their annotations.
 */
function modifiedVersionOf(line: Buffer): Version | undefined {
  if (!line.subarray(0, MODIFIED.length).equals(MODIFIED)) return undefined;
  const metadataAt = line.subarray(0, METADATA_WITHIN).indexOf(METADATA);
  if (metadataAt < 0) return undefined;
  const uid = textAfter(line, UID, metadataAt);
  const resourceVersion = textAfter(line, VERSION, metadataAt);
  return uid === undefined || resourceVersion === undefined ? undefined : { uid, resourceVersion };
}

/** The text in quotes that follows the first `start`. */
function textAfter(line: Buffer, start: Buffer, from: number): string | undefined {
  const at = line.indexOf(start, from);
  const textAt = at + start.length;
  return at < 0 ? undefined : line.toString('latin1', textAt, line.indexOf(QUOTE, textAt));
}
