import { ControllerError } from '../../src/errors.ts';

/** Nothing of the command has left. */
export function notConnected(reason: string, cause?: unknown): ControllerError {
  return new ControllerError('Tunnel.NotConnected', `command not sent: ${reason}`, { cause });
}

/** The base has possibly got the command. */
export function sendFailed(reason: string, cause?: unknown): ControllerError {
  return new ControllerError('Tunnel.SendFailed', `command not answered: ${reason}`, { cause });
}
