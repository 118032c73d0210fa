import { createHash, timingSafeEqual } from 'node:crypto';
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { canonicalAddress, sourceOf } from '../../src/ip-address.ts';
import type { Logger } from '../../src/logger.ts';
import { inAnyOf, type Network } from '../../src/tunnel/address-policy.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { MAX_HEART_BYTES } from '../arklet/parse.ts';
import { BodyDropped, type BodyReader } from './body-reader.ts';
import { MAX_BATCH_BYTES, MEMBERS_PATH } from './member-client.ts';
import { digestOf, MEMBER_SCHEME, type MemberVerifier } from './member-proof.ts';
import type { Taken } from './member-relay.ts';
import type { MessageType } from './receive.ts';

/** Interval of the heartbeats of a base, in seconds. */
const RETRY_AFTER_S = '12';

export interface HeartbeatAppOptions {
  readonly tunnel: TunnelName;
  /** Default: whoever reaches the port may speak for any base. */
  readonly tokens?: readonly string[] | undefined;
  /**
   * Trusted proxies. Behind them the sender is the rightmost address in `X-Forwarded-For` that is none of them.
   * Default: none.
   */
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly logger: Logger;
  /** Reads the bodies of messages; members have proven who they are before theirs are read. */
  readonly bodies: BodyReader;
  /** Whether a message of `sender` is taken at all; asked before anything of it is read. */
  readonly admits: (sender: string) => boolean;
  /** Takes the body of a message, or says why it cannot. `sender`: the address that it came from. */
  readonly onMessage: (type: MessageType, sender: string, body: Uint8Array) => InvalidMessage | undefined;
  /** Hears of every message that is refused, also of those whose body is not read. */
  readonly onInvalid: (invalid: InvalidMessage) => void;
  /** Default: there is no path for other members. */
  readonly members?: MemberPath | undefined;
}

/** Path on which other members pass on what bases said to them. */
export interface MemberPath {
  readonly verifier: Pick<MemberVerifier, 'verify'>;
  /** Takes the body of a batch, or says why it cannot. */
  readonly onBatch: (member: string, body: Uint8Array) => Taken | InvalidMessage;
}

const PATHS: Readonly<Record<string, MessageType>> = { '/heartbeat': 'heart', '/queryBaseline': 'queryBaseline' };

/** The paths that bases post to, and other members. A refusal is JSON: a code and, in the message, the field. */
export function heartbeatApp(options: HeartbeatAppOptions): Express {
  const { tokens, trustedProxies, members } = options;
  const app = express();
  if (trustedProxies) app.set('trust proxy', inAnyOf(trustedProxies));
  app.disable('x-powered-by');
  app.disable('etag');
  // The cheapest check comes first. A compressed body is refused.
  const readBody = (authenticate: RequestHandler, reading: RequestHandler): RequestHandler[] => [
    authenticate,
    takingJson(options),
    reading,
  ];
  const ofBase = readBody(authenticatingBase(options, tokens), readingBody(options));
  for (const [path, type] of Object.entries(PATHS)) app.post(path, limiting(options), ofBase, taking(type, options));
  const paths = Object.keys(PATHS);
  if (members) {
    const ofMember = readBody(authenticatingMember(options, members), express.raw({ ...RAW, limit: MAX_BATCH_BYTES }));
    app.post(MEMBERS_PATH, ofMember, checkingDigest(options), takingBatch(members, options));
    paths.push(MEMBERS_PATH);
  }
  app.all(paths, (_request, response) => sendError(response.set('Allow', 'POST'), 405, 'only POST'));
  app.use((_request, response) => sendError(response, 404, 'no such path'));
  app.use(refusingUnread(options));
  return app;
}

/** Any type, since that is checked before. */
const RAW = { type: () => true, inflate: false };

/** A base says all that matters again with its next heartbeat. */
function limiting({ admits }: HeartbeatAppOptions): RequestHandler {
  return (request, response, next) => {
    if (admits(senderOf(request))) next();
    else sendTooMany(response);
  };
}

/** Reads a body as `express.raw` does, in the memory that all bodies of bases share. */
function readingBody({ bodies }: HeartbeatAppOptions): RequestHandler {
  const tooLong = { status: 413, limit: MAX_HEART_BYTES };
  return (request, response, next) => {
    const { 'content-encoding': encoding = 'identity', 'content-length': announced = '0' } = request.headers;
    if (encoding.toLowerCase() !== 'identity') next({ status: 415, type: 'encoding.unsupported' });
    else if (Number(announced) > MAX_HEART_BYTES) next(tooLong);
    else {
      bodies.read(request, { source: sourceOf(senderOf(request)), maxBytes: MAX_HEART_BYTES }).then(
        (body) => {
          request.body = body;
          next(body.byteLength > MAX_HEART_BYTES ? tooLong : undefined);
        },
        (error: unknown) => {
          if (error instanceof BodyDropped) sendTooMany(response);
          else next({ status: 400, type: 'request.aborted' });
        },
      );
    }
  };
}

function authenticatingBase(options: HeartbeatAppOptions, tokens: readonly string[] | undefined): RequestHandler {
  return (request, response, next) => {
    if (tokens === undefined || carriesToken(request.headers.authorization, tokens)) next();
    else refuse401(options, request, response, tokenFaultOf(request), 'Bearer');
  };
}

function tokenFaultOf({ headers }: Request): string {
  return headers.authorization === undefined
    ? 'there is no Authorization header with a token'
    : 'the Authorization header does not carry a valid token';
}

/** Leaves the digest that the body must have for `checkingDigest`. */
function authenticatingMember(options: HeartbeatAppOptions, { verifier }: MemberPath): RequestHandler {
  return (request, response, next) => {
    const { method, originalUrl: path, headers } = request;
    const verdict = verifier.verify({ method, path, authorization: headers.authorization });
    if (verdict.fault === undefined) {
      response.locals.bodyDigest = verdict.bodyDigest;
      next();
    } else refuse401(options, request, response, verdict.fault, verdict.challenge);
  };
}

function checkingDigest(options: HeartbeatAppOptions): RequestHandler {
  return (request, response, next) => {
    if (digestOf(bodyOf(request)) === response.locals.bodyDigest) next();
    else refuse401(options, request, response, 'body is not the digest of the payload', MEMBER_SCHEME);
  };
}

function refuse401(
  options: HeartbeatAppOptions,
  request: Request,
  response: Response,
  message: string,
  challenge: string,
): void {
  const invalid = { ...invalidOf(options, request, message), code: 'Arklet.Unauthenticated' } as const;
  refuse(options, response.set('WWW-Authenticate', challenge), 401, invalid);
}

function takingJson(options: HeartbeatAppOptions): RequestHandler {
  return (request, response, next) => {
    if (/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) next();
    else refuse(options, response, 415, invalidOf(options, request, 'Content-Type is not application/json'));
  };
}

function taking(type: MessageType, options: HeartbeatAppOptions): RequestHandler {
  return (request, response) => {
    const invalid = options.onMessage(type, senderOf(request), bodyOf(request));
    if (invalid) refuse(options, response, invalid.code === 'Arklet.AddressRefused' ? 403 : 400, invalid);
    else if (type === 'heart') response.type('text/plain').send('SUCCESS');
    // No baseline: a base gets install commands, whose answers show their result.
    else response.json([]);
  };
}

function takingBatch({ onBatch }: MemberPath, options: HeartbeatAppOptions): RequestHandler {
  return (request, response) => {
    const outcome = onBatch(senderOf(request), bodyOf(request));
    if ('code' in outcome) refuse(options, response, 400, outcome);
    else response.json(outcome);
  };
}

/** The reader of bodies throws: too long, compressed, cut off. */
function refusingUnread(options: HeartbeatAppOptions): ErrorRequestHandler {
  return (error: { status?: number; type?: string; limit?: number }, request, response, _next) => {
    const { status = 500, type, limit } = error;
    if (status >= 500) {
      options.logger.error({ err: error, tunnel: options.tunnel }, 'message of a base could not be taken');
      sendError(response, 500, 'internal error');
      return;
    }
    const reason = status === 413 ? `has more than ${limit} bytes` : `cannot be read: ${type}`;
    refuse(options, response, status, invalidOf(options, request, `payload ${reason}`));
  };
}

function refuse({ onInvalid }: HeartbeatAppOptions, response: Response, status: number, invalid: InvalidMessage): void {
  onInvalid(invalid);
  sendError(response, status, invalid.message, invalid.code);
}

function sendTooMany(response: Response): void {
  sendError(response.set('Retry-After', RETRY_AFTER_S), 429, 'too many messages, try again later');
}

/** Ends the connection too: there may be a body on the way that nobody wants. */
function sendError(response: Response, status: number, message: string, code?: InvalidMessage['code']): void {
  response
    .status(status)
    .set('Connection', 'close')
    .json({ ...(code && { code }), message });
}

function invalidOf({ tunnel }: HeartbeatAppOptions, request: Request, message: string): InvalidMessage {
  return { tunnel, identity: undefined, sender: senderOf(request), code: 'Arklet.InvalidMessage', message };
}

/** What a client of a trusted proxy writes into the header stands further left, and is not read. */
function senderOf({ ip }: Request): string {
  return canonicalAddress(ip ?? '');
}

function bodyOf({ body }: Request): Uint8Array {
  return Buffer.isBuffer(body) ? body : new Uint8Array();
}

/**
 * Whether an `authorization` header carries one of the tokens. Takes as long for a nearly right one as for a wrong one.
 */
function carriesToken(authorization: string | undefined, tokens: readonly string[]): boolean {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  const digest = sha256Of(given);
  return tokens.filter((token) => timingSafeEqual(digest, sha256Of(token))).length > 0;
}

/** SHA-256 of a text: all have one length, as the comparison requires. */
function sha256Of(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
