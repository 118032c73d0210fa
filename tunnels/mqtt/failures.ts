import { ControllerError } from '../../src/errors.ts';

export function notConnected(): ControllerError {
  return new ControllerError('Tunnel.NotConnected', 'the link to the broker is down');
}

export function notAllowed(): ControllerError {
  return new ControllerError('Tunnel.NotConnected', 'command not sent: another replica may lead the base');
}

export function notWritten(): ControllerError {
  return new ControllerError(
    'Tunnel.NotConnected',
    'command not sent: the broker acknowledges earlier ones too slowly',
  );
}

export function sendFailed(reason: string, cause?: Error): ControllerError {
  return new ControllerError('Tunnel.SendFailed', `it is unknown whether the command was sent: ${reason}`, { cause });
}

/** Codes of what a peer does that does not understand what it gets. */
const NOT_UNDERSTOOD: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ERR_SSL_WRONG_VERSION_NUMBER']);

/** What may be wrong where the broker ended a connection before it answered; undefined where `error` says it itself. */
export function hintOf(error: unknown, isTls: boolean): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (!(error instanceof ClosedByBroker || NOT_UNDERSTOOD.has(code))) return undefined;
  return isTls ? TLS_HINT : PLAIN_HINT;
}

const PLAIN_HINT = 'the broker may want TLS on this port: set MQTT_CA_PATH';
const TLS_HINT = 'the broker may not take TLS on this port (MQTT_PORT), or may want a client certificate';

/** The broker closed the connection, and did not say why. */
export class ClosedByBroker extends Error {
  constructor() {
    super('the broker closed the connection');
  }
}
