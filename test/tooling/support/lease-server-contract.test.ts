import { describeLeases, LEASE_NAMESPACE } from '../../contract/leases.ts';
import { LeaseServer } from '../../support/lease-simulation/lease-server.ts';
import { Dice } from '../../support/lease-simulation/timeline.ts';

const server = new LeaseServer(new Dice(1));

describeLeases('the LeaseServer of the simulations', () => ({
  get: async (name) => server.get(LEASE_NAMESPACE, name),
  create: async (lease) => server.create(lease),
  patch: async (name, patch) => server.patch(LEASE_NAMESPACE, name, patch),
  delete: async (name, uid, version) => server.delete(LEASE_NAMESPACE, name, uid, version),
}));
