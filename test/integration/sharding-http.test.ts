import { describeSharding } from '../support/cluster/describe-sharding.ts';

describeSharding('http');
