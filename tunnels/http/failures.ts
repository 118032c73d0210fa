import { ControllerError } from '../../src/errors.ts';

/** Nothing of the command has left. */
export function notConnected(reason: string, cause?: unknown): ControllerError {
  return new ControllerError('Tunnel.NotConnected', `command not sent: ${reason}`, { cause });
}

/** The gate is closed; nothing of the command has left. */
export function notAllowed(): ControllerError {
  return notConnected('another replica may lead the base');
}

/** The base has possibly got the command. */
export function sendFailed(reason: string, cause?: unknown): ControllerError {
  return new ControllerError('Tunnel.SendFailed', `command not answered: ${reason}`, { cause });
}
