import { describeSharding } from '../support/cluster/describe-sharding.ts';

describeSharding({ tunnels: ['http'], faultsOf: ['replicas', 'processes', 'names', 'api-link', 'broker', 'api'] });
