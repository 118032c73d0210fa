import { describeSharding } from '../support/cluster/describe-sharding.ts';

describeSharding({ tunnels: ['mqtt', 'http'], faultsOf: ['replicas'], keptPerBase: 9 });
