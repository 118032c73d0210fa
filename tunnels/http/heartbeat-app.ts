import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import type { Logger } from '../../src/logger.ts';
import type { InvalidMessage, TunnelName } from '../../src/tunnel/tunnel.ts';
import { carriesToken } from './bearer-token.ts';
import type { MessageType } from './receive.ts';

const MAX_BODY_BYTES = 64 * 1024;

export interface HeartbeatAppOptions {
  readonly tunnel: TunnelName;
  /** Default: whoever reaches us may speak for any base. */
  readonly token?: string | undefined;
  readonly logger: Logger;
  /** Takes the body of a message, or says why it cannot. `sender`: the address that it came from. */
  readonly onMessage: (type: MessageType, sender: string, body: Uint8Array) => InvalidMessage | undefined;
  /** Hears of every message that is refused, also of those whose body is not read. */
  readonly onInvalid: (invalid: InvalidMessage) => void;
}

const PATHS: Readonly<Record<string, MessageType>> = { '/heartbeat': 'heart', '/queryBaseline': 'queryBaseline' };

/** The paths that bases post to. A refusal is JSON: a code and, in the message, the field. */
export function heartbeatApp(options: HeartbeatAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // What costs us least comes first. A compressed body is refused.
  const readBody = [authenticating(options), takingJson(options), express.raw({ ...RAW, limit: MAX_BODY_BYTES })];
  for (const [path, type] of Object.entries(PATHS)) app.post(path, readBody, taking(type, options));
  app.all(Object.keys(PATHS), (_request, response) => sendError(response.set('Allow', 'POST'), 405, 'only POST'));
  app.use((_request, response) => sendError(response, 404, 'no such path'));
  app.use(refusingUnread(options));
  return app;
}

/** Any type, since that is checked before. */
const RAW = { type: () => true, inflate: false };

function authenticating(options: HeartbeatAppOptions): RequestHandler {
  const { token } = options;
  return (request, response, next) => {
    if (token === undefined || carriesToken(request.headers.authorization, token)) {
      next();
      return;
    }
    const fault = invalidOf(options, request, 'the Authorization header does not carry the token');
    refuse(options, response.set('WWW-Authenticate', 'Bearer'), 401, { ...fault, code: 'Arklet.Unauthenticated' });
  };
}

function takingJson(options: HeartbeatAppOptions): RequestHandler {
  return (request, response, next) => {
    if (/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) next();
    else refuse(options, response, 415, invalidOf(options, request, 'Content-Type is not application/json'));
  };
}

function taking(type: MessageType, options: HeartbeatAppOptions): RequestHandler {
  return (request, response) => {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const invalid = options.onMessage(type, senderOf(request), body);
    if (invalid) refuse(options, response, invalid.code === 'Arklet.AddressRefused' ? 403 : 400, invalid);
    else if (type === 'heart') response.type('text/plain').send('SUCCESS');
    // No baseline: a base is told what to install by commands, whose answers say what became of it.
    else response.json([]);
  };
}

/** The reader of bodies throws: too long, compressed, cut off. */
function refusingUnread(options: HeartbeatAppOptions): ErrorRequestHandler {
  return (error: { status?: number; type?: string }, request, response, _next) => {
    const { status = 500, type } = error;
    if (status >= 500) {
      options.logger.error({ err: error, tunnel: options.tunnel }, 'message of a base could not be taken');
      sendError(response, 500, 'internal error');
      return;
    }
    const reason = status === 413 ? `has more than ${MAX_BODY_BYTES} bytes` : `cannot be read: ${type}`;
    refuse(options, response, status, invalidOf(options, request, `payload ${reason}`));
  };
}

function refuse({ onInvalid }: HeartbeatAppOptions, response: Response, status: number, invalid: InvalidMessage): void {
  onInvalid(invalid);
  sendError(response, status, invalid.message, invalid.code);
}

/** Ends the connection too: there may be a body on the way that nobody wants. */
function sendError(response: Response, status: number, message: string, code?: InvalidMessage['code']): void {
  response
    .status(status)
    .set('Connection', 'close')
    .json({ ...(code && { code }), message });
}

function invalidOf({ tunnel }: HeartbeatAppOptions, request: Request, message: string): InvalidMessage {
  return { tunnel, identity: senderOf(request), code: 'Arklet.InvalidMessage', message };
}

function senderOf({ socket }: Request): string {
  return socket.remoteAddress ?? '';
}
