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
