import { ConfigFields } from './config-fields.ts';
import { bearerOf, type DatedCredential } from './credential-keeper.ts';

/** Reads the ExecCredential that a plugin printed. Errors never quote it: it holds secrets. */
export function credentialOfOutput(text: string, apiVersion: string): DatedCredential {
  const output = new ConfigFields('its output', '', parseJson(text));
  if (output.string('kind') !== 'ExecCredential') throw new Error('its output is no ExecCredential');
  if (output.string('apiVersion') !== apiVersion) throw new Error(`its output is not of ${apiVersion}, as configured`);
  const status = output.fields('status');
  const token = status.string('token');
  const cert = status.string('clientCertificateData');
  const key = status.string('clientKeyData');
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('its output has one of clientCertificateData and clientKeyData, not both');
  }
  if (token === undefined && cert === undefined) {
    throw new Error('its output has neither a token nor a client certificate');
  }
  const authorization = token === undefined ? undefined : bearerOf(token);
  return { credential: { authorization, cert, key }, expiresAtMs: expiryOf(status) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(text.trim() === '' ? 'it printed nothing' : 'its output is no JSON');
  }
}

function expiryOf(status: ConfigFields): number | undefined {
  const text = status.string('expirationTimestamp');
  if (text === undefined) return undefined;
  const expiresAtMs = Date.parse(text);
  if (Number.isNaN(expiresAtMs)) throw new Error('the expirationTimestamp in its output is no time');
  return expiresAtMs;
}
