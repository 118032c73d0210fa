import { type Mosquitto, startMosquitto } from '../../samples/broker/mosquitto.ts';
import { pageBlock } from './page-block.ts';

/** The user of the controller, as its variables. */
export const CONTROLLER_ACCESS = { MQTT_USERNAME: 'module-controller', MQTT_PASSWORD: 'secret of the controller' };

export function passwordOf(identity: string): string {
  return `secret of ${identity}`;
}

/** Mosquitto as docs/install.md describes it: its configuration, its rights, a user for each base and one for controllers. */
export function startDocumentedMosquitto(identities: readonly string[]): Promise<Mosquitto> {
  return startMosquitto({
    conf: pageBlock('per_listener_settings true'),
    acls: {
      'bases.acl': pageBlock('pattern write koupleless_dev/%u/base/+'),
      'controllers.acl': pageBlock('user module-controller'),
    },
    users: {
      'bases.passwd': Object.fromEntries(identities.map((identity) => [identity, passwordOf(identity)])),
      'controllers.passwd': { [CONTROLLER_ACCESS.MQTT_USERNAME]: CONTROLLER_ACCESS.MQTT_PASSWORD },
    },
  });
}
