import { describeSharding } from '../support/cluster/describe-sharding.ts';

describeSharding({ tunnels: ['mqtt', 'http'], faultsOf: ['api'], bases: 36, keptPerBase: 9 });
