import { describeSharding } from '../support/cluster/describe-sharding.ts';

describeSharding({ tunnels: ['mqtt'], faultsOf: ['replicas', 'processes', 'names', 'api-link', 'broker', 'api'] });
