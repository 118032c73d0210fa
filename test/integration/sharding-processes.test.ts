import { describeSharding, SMALL } from '../support/cluster/describe-sharding.ts';

describeSharding({ tunnels: ['mqtt', 'http'], faultsOf: ['processes', 'api-link'], ...SMALL });
