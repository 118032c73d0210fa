/**
 * Every error code of the controller, `Source.Type`, with what it means to an operator.
 * The table in docs/reference.md has the same: a test compares the two.
 */
export const ERROR_CATALOGUE = {
  'Config.Invalid': 'An environment variable is missing or holds a value outside its rule; all faults are listed.',
  'Kube.ConfigInvalid': 'The kubeconfig or the in-cluster service account cannot be used; the message names the field.',
  'Kube.RequestFailed': 'The API server answered a request with an error status.',
  'Kube.ConnectionFailed':
    'A request to the API server got no complete answer: the connection was refused or closed, or the request timed out.',
  'Kube.NotPermitted': 'A write was held back because another replica may lead the Node by now; nothing was sent.',
  'Kube.CrdUnusable':
    'A CustomResourceDefinition cannot be upgraded or is not served; the message says why. Its controller does not start.',
  'Kube.WatchFailed': 'A watch ended with an error; it is restarted with a growing delay.',
  'Webhook.SecretMissing':
    'The Secret that holds the certificates of the webhook server does not exist; apply `deploy/platform` again, or run `helm upgrade`.',
  'Arklet.InvalidMessage': 'A base sent a payload that does not fit the protocol; the message names the field.',
  'Arklet.InvalidIdentity':
    'The identity of a base cannot be part of a Node name: at most 57 characters, a lower-case RFC 1123 subdomain.',
  'Arklet.IdentityMismatch': 'The identity inside a payload differs from the one in its topic; the message is dropped.',
  'Arklet.AddressRefused':
    'A heartbeat over HTTP names an address that is not called: in no network of bases (`BASE_NETWORKS`), or not a base’s.',
  'Arklet.Unauthenticated':
    'A message over HTTP came without `HTTP_TUNNEL_TOKEN` from a base, or from another replica without a proof that this process accepts: made with a key of `MEMBER_TOKEN` for this `ENV` and this process, not used before.',
  'Tunnel.NotConnected':
    'A command could not be sent because the link to the broker, or to the base over HTTP, is down, because the broker acknowledges too slowly, because all event loops of the base are busy, because it has more than 1 MiB, or because another replica may lead the base; it is sent again later.',
  'Tunnel.SendFailed':
    'It is unknown whether the base got a command: no acknowledgement or answer came. The next lists of the base decide.',
  'Cluster.ClientIdTaken':
    'Another live process has this CLIENT_ID. A process that starts waits until the other has gone; a process that was running ends.',
  'Cluster.MemberUnreachable':
    'Another replica did not accept messages of bases over HTTP. They are dropped, since bases repeat their heartbeats.',
  'Base.TooManyModules':
    'A list of a base is refused because more than 4,000 modules of the base would be known with it; nothing is removed, and the base is asked again.',
  'Catalog.ContentLost':
    'Somebody has deleted the ConfigMap of a version of a configuration. The present content is stored again; for another version apply its content.',
  'Catalog.NameTaken':
    'A ConfigMap that a version of a configuration needs has the name, and is another one. The version does not come into force.',
  'Rollout.TemplateInvalid':
    'The template of a ModuleDeployment cannot be read, or its Pods would not match its own selector. No Pod is created; the message names the field.',
  'Rollout.PodMismatch':
    'The API server has stored a Pod with labels that the selector of its ModuleDeployment does not match: a webhook has changed them. The Pod is deleted.',
  'VNode.NameTaken': 'The Node of a base already exists, but does not belong to this controller and ENV.',
} as const;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** An error of this program: a code to look up, a message for people, the cause for the log. */
export class ControllerError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ControllerError';
    this.code = code;
  }
}

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
