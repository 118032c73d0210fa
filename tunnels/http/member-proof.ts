import { createHash, createHmac, createSecretKey, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto';

/** One process of a replica. */
export interface MemberProcess {
  /** CLIENT_ID of the replica. */
  readonly id: string;
  /** Random nonce of the process, which is in its membership Lease. */
  readonly boot: string;
}

/** With what a replica proves its messages, and checks those of others. */
export interface MemberIdentity {
  /** A replica of another ENV that has the same key and CLIENT_ID proves nothing to this one. */
  readonly env: string;
  /** One or two keys: a replica proves with each, and accepts a proof with any of them. They are never sent. */
  readonly keys: readonly string[];
  readonly self: MemberProcess;
}

/** What a proof is about. A proof for one of these is none for another that differs in any field. */
interface Statement {
  readonly env: string;
  readonly method: string;
  /** With the query, as the request line has it. */
  readonly path: string;
  readonly sender: string;
  readonly senderBoot: string;
  readonly receiver: string;
  readonly receiverBoot: string;
  readonly counter: string;
  /** SHA-256 of the body, in hexadecimal digits. */
  readonly body: string;
}

type FieldName = keyof typeof FIELDS;
type Fields<Name extends FieldName> = Readonly<Record<Name, string>>;

/** The name of the authentication scheme (RFC 9110). */
export const MEMBER_SCHEME = 'Member-HMAC-SHA256';
/** First in what the keys sign, so that no signature for one purpose is valid for another. */
const MESSAGE_PURPOSE = 'module-controller member message, version 1';
const CHALLENGE_PURPOSE = 'module-controller member challenge, version 1';
const MAX_HEADER_LENGTH = 2_048;
/** Processes whose highest counter is remembered. Only a holder of a key can add one. */
const MAX_SENDERS = 1_024;

const NAME = { pattern: /^[A-Za-z0-9._-]{1,128}$/, text: 'at most 128 of A-Za-z0-9._-' };
const DIGEST = { pattern: /^[\da-f]{64}$/, text: '64 hexadecimal digits' };
const FIELDS = {
  sender: NAME,
  senderBoot: NAME,
  receiver: NAME,
  receiverBoot: NAME,
  counter: { pattern: /^[1-9]\d{0,14}$/, text: 'a whole number from 1, of at most 15 digits' },
  body: DIGEST,
  macs: {
    pattern: /^[\da-f]{64}(\.[\da-f]{64})?$/,
    text: 'one or two MACs of 64 hexadecimal digits, separated by a dot',
  },
};
const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];
const CHALLENGE_NAMES = ['receiver', 'receiverBoot', 'macs'] as const;

/** Proves what this process sends to other members. */
export class MemberProver {
  readonly #env: string;
  readonly #keys: readonly KeyObject[];
  readonly #self: MemberProcess;
  /** One for all receivers: it is enough that each of them sees it go up. */
  #counter = 0;

  constructor({ env, keys, self }: MemberIdentity) {
    this.#env = env;
    this.#keys = keys.map(keyOf);
    this.#self = self;
  }

  /**
   * The Authorization header of one request; each call makes another one. Throws when the receiver, which a Lease
   * names, cannot stand in a header.
   */
  prove(method: string, path: string, receiver: MemberProcess, body: Uint8Array): string {
    checkField('receiver', receiver.id);
    checkField('receiverBoot', receiver.boot);
    const statement: Statement = {
      env: this.#env,
      method,
      path,
      sender: this.#self.id,
      senderBoot: this.#self.boot,
      receiver: receiver.id,
      receiverBoot: receiver.boot,
      counter: String(++this.#counter),
      body: digestOf(body),
    };
    return headerOf(FIELD_NAMES, { ...statement, macs: macsOf(this.#keys, messageTextOf(statement)) });
  }

  /**
   * The boot that the receiver uses now, from its refusal of the request with this `authorization`. Undefined unless
   * a holder of one of the keys signed the challenge in answer to that very request: another boot would let a listener
   * at a false address choose for which process the next messages are valid. Never throws.
   */
  challengedBoot(challenge: unknown, authorization: string): string | undefined {
    const request = readFields(authorization, 'Authorization', FIELD_NAMES);
    const given = typeof challenge === 'string' && readFields(challenge, 'WWW-Authenticate', CHALLENGE_NAMES);
    if (!given || typeof given === 'string' || typeof request === 'string') return undefined;
    const { receiver, receiverBoot, macs } = given;
    const text = challengeTextOf(this.#env, { id: request.receiver, boot: receiverBoot }, request.macs);
    return receiver === request.receiver && isSigned(this.#keys, text, macs) ? receiverBoot : undefined;
  }
}

export interface ProvenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
}

export type Verdict =
  /** The digest that the body must have. */
  | { readonly bodyDigest: string; readonly fault?: never; readonly challenge?: never }
  /** `challenge`: what the WWW-Authenticate header of the refusal says. */
  | { readonly bodyDigest?: never; readonly fault: string; readonly challenge: string };

/** Checks what other members send to this process. */
export class MemberVerifier {
  readonly #env: string;
  readonly #keys: readonly KeyObject[];
  readonly #id: string;
  /** That of the process at first; another one whenever `#highest` is emptied. */
  #boot: string;
  /** The highest counter of each process that sent a message for `#boot`, by CLIENT_ID and boot. */
  readonly #highest = new Map<string, number>();

  constructor({ env, keys, self }: MemberIdentity) {
    this.#env = env;
    this.#keys = keys.map(keyOf);
    this.#id = self.id;
    this.#boot = self.boot;
  }

  /**
   * Accepts each proof once, and does so before the body is read: a proof that was overheard buys no second body.
   * Never throws. The verifier does not read membership Leases: a watch that hangs must not make bases look silent.
   */
  verify({ method, path, authorization = '' }: ProvenRequest): Verdict {
    const given = readFields(authorization, 'Authorization', FIELD_NAMES);
    if (typeof given === 'string') return { fault: given, challenge: MEMBER_SCHEME };
    if (!isSigned(this.#keys, messageTextOf({ env: this.#env, method, path, ...given }), given.macs)) {
      return { fault: 'macs: none is made with a key of MEMBER_TOKEN for this ENV', challenge: MEMBER_SCHEME };
    }
    // A member wrote what follows.
    if (given.receiver !== this.#id) return { fault: `receiver is not ${this.#id}`, challenge: MEMBER_SCHEME };
    if (given.receiverBoot !== this.#boot) {
      return { fault: `receiverBoot is not the current one of ${this.#id}`, challenge: this.#challengeTo(given.macs) };
    }
    if (!this.#isNew(given)) {
      return { fault: 'counter is not above that of an earlier message of this sender', challenge: MEMBER_SCHEME };
    }
    return { bodyDigest: given.body };
  }

  /** Names the current boot to the sender of the request that has these MACs. */
  #challengeTo(requestMacs: string): string {
    const text = challengeTextOf(this.#env, { id: this.#id, boot: this.#boot }, requestMacs);
    const macs = macsOf(this.#keys, text);
    return headerOf(CHALLENGE_NAMES, { receiver: this.#id, receiverBoot: this.#boot, macs });
  }

  /**
   * No counter is forgotten while messages for `#boot` are accepted. A full table is emptied together with a change of
   * the boot, so every earlier message stays refused; senders get the new boot by a challenge, at one batch each.
   */
  #isNew({ sender, senderBoot, counter }: Fields<FieldName>): boolean {
    // Neither of the two contains a space.
    const key = `${sender} ${senderBoot}`;
    if (Number(counter) <= (this.#highest.get(key) ?? 0)) return false;
    this.#highest.set(key, Number(counter));
    if (this.#highest.size > MAX_SENDERS) {
      this.#highest.clear();
      this.#boot = randomUUID();
    }
    return true;
  }
}

export function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex');
}

/** Unlike a string, a KeyObject shows nothing of itself when an object that holds it is printed. */
function keyOf(key: string): KeyObject {
  return createSecretKey(Buffer.from(key));
}

// As JSON no two lists of texts look the same.
function messageTextOf(statement: Statement): string {
  const { env, method, path, sender, senderBoot, receiver, receiverBoot, counter, body } = statement;
  const route = [env, method, path, sender, senderBoot, receiver, receiverBoot];
  return JSON.stringify([MESSAGE_PURPOSE, ...route, counter, body]);
}

function challengeTextOf(env: string, receiver: MemberProcess, requestMacs: string): string {
  return JSON.stringify([CHALLENGE_PURPOSE, env, receiver.id, receiver.boot, requestMacs]);
}

function macOf(key: KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** One MAC with each key. */
function macsOf(keys: readonly KeyObject[], text: string): string {
  return keys.map((key) => macOf(key, text).toString('hex')).join('.');
}

/** Whether one of the MACs, which have the form that `FIELDS` asks for, is made with one of the keys. */
function isSigned(keys: readonly KeyObject[], text: string, macs: string): boolean {
  const given = macs.split('.').map((mac) => Buffer.from(mac, 'hex'));
  return keys.some((key) => {
    const expected = macOf(key, text);
    return given.some((mac) => timingSafeEqual(mac, expected));
  });
}

function headerOf<Name extends FieldName>(names: readonly Name[], fields: Fields<Name>): string {
  return `${MEMBER_SCHEME} ${names.map((name) => `${name}=${fields[name]}`).join(', ')}`;
}

/** The fields, or why the text cannot be read; that names a field, and repeats nothing of what a stranger sent. */
function readFields<Name extends FieldName>(
  text: string,
  header: string,
  names: readonly Name[],
): Fields<Name> | string {
  if (text.length > MAX_HEADER_LENGTH) return `${header} has more than ${MAX_HEADER_LENGTH} characters`;
  if (!text.startsWith(`${MEMBER_SCHEME} `)) return `${header} is not of the scheme ${MEMBER_SCHEME}`;
  const params = text.slice(MEMBER_SCHEME.length + 1).split(', ');
  if (params.length > names.length) return `${header} has more than ${names.length} fields`;
  const values = new Map(params.map((param) => splitOnce(param)));
  const fields: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = values.get(name);
    if (value === undefined) return `${name} is missing`;
    if (!FIELDS[name].pattern.test(value)) return `${name} is not ${FIELDS[name].text}`;
    fields[name] = value;
  }
  return fields as Fields<Name>;
}

function splitOnce(param: string): [string, string] {
  const at = param.indexOf('=');
  return at < 0 ? [param, ''] : [param.slice(0, at), param.slice(at + 1)];
}

function checkField(name: FieldName, value: string): void {
  if (!FIELDS[name].pattern.test(value)) throw new Error(`${name} is not ${FIELDS[name].text}`);
}
