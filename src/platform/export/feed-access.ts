import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { KubeObject } from '../../kube/objects.ts';
import type { ResourceClient, ResourceKind } from '../../kube/resource.ts';
import type { Logger } from '../../logger.ts';
import { LruMap } from '../../lru-map.ts';
import { TokenBucket } from '../../token-bucket.ts';
import { type ConsumerTokens, digestOf } from './consumer-tokens.ts';
import { EXPORT_SERVICES } from './export-service.ts';

export const TOKEN_REVIEWS: ResourceKind = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  isNamespaced: false,
};

export const SUBJECT_ACCESS_REVIEWS: ResourceKind = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  isNamespaced: false,
};

/** `authentication.k8s.io/v1` UserInfo. */
interface UserInfo {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface TokenReviewObject extends KubeObject {
  readonly spec: { readonly token: string };
  readonly status?: { readonly authenticated?: boolean; readonly user?: UserInfo };
}

export interface AccessReviewObject extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: { readonly allowed: boolean };
}

/**
 * The decision about a request. `Balancer`: it has a token of the group. `Allowed`: its owner may get the objects in the
 * cluster. `Unauthenticated`: the token is unknown. `Forbidden`: its owner may not read these objects. `Busy`: too many
 * unknown tokens come. `Unknown`: the API server did not answer, so the request is refused.
 */
export type Access = 'Balancer' | 'Allowed' | 'Unauthenticated' | 'Forbidden' | 'Busy' | 'Unknown';

/** What a request wants to read. */
export interface FeedScope {
  readonly group: string;
  /** Undefined: of all namespaces. */
  readonly namespace: string | undefined;
}

/** Equal for equal scopes. */
export function scopeKey({ group, namespace }: FeedScope): string {
  return JSON.stringify([group, namespace]);
}

/** Who asks. */
export interface Caller {
  readonly header: string | undefined;
  readonly source: string;
  /** It has a watch already. */
  readonly isWatching?: boolean;
}

export interface FeedAccessOptions {
  /** Undefined: there are no tokens but those of the cluster. */
  readonly tokens: Pick<ConsumerTokens, 'groupsOf'> | undefined;
  readonly tokenReviews: Pick<ResourceClient<TokenReviewObject>, 'create'>;
  readonly accessReviews: Pick<ResourceClient<AccessReviewObject>, 'create'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A token that is taken back works for no longer than this. */
const ALLOWED_FOR_MS = 60_000;
/** Long enough to keep a client that tries again and again from the API server. */
const REFUSED_FOR_MS = 10_000;
const MAX_ANSWERS = 1_000;
/** A JWT with many claims has a few thousand characters. */
const MAX_TOKEN_LENGTH = 16_384;
/** Questions to the API server: whoever sends random tokens costs it no more, and others not at all. */
const QUESTIONS = { burst: 100, refillMs: 50 };
const QUESTIONS_OF_SOURCE = { burst: 20, refillMs: 500 };
const MAX_SOURCES = 1_000;
/** Questions about owners of open watches: those are 500 at most, and each is asked about once a minute. */
const QUESTIONS_OF_WATCHES = { burst: 100, refillMs: 50 };
const REVIEW_TIMEOUT_MS = 5_000;

interface Answer {
  access: Promise<Access>;
  /** On the clock. */
  until: number;
}

/**
 * Who may read the feed: whoever may `get` ExportServices, in the namespace that is asked for or in all of them, and
 * the balancers that have a token of the group.
 */
export class FeedAccess {
  readonly #options: FeedAccessOptions;
  /** Answers by token and namespace. */
  readonly #answers = new LruMap<Answer>(MAX_ANSWERS);
  readonly #questions: TokenBucket;
  readonly #questionsOf = new LruMap<TokenBucket>(MAX_SOURCES);
  readonly #questionsOfWatches: TokenBucket;

  constructor(options: FeedAccessOptions) {
    this.#options = options;
    this.#questions = new TokenBucket(QUESTIONS, options.clock.now());
    this.#questionsOfWatches = new TokenBucket(QUESTIONS_OF_WATCHES, options.clock.now());
  }

  /** `header`: `Authorization: Bearer …`. `source`: the address that the request comes from. Never rejects. */
  async of({ header, source, isWatching = false }: Caller, { group, namespace }: FeedScope): Promise<Access> {
    const token = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? '')?.[1];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) return 'Unauthenticated';
    const digest = digestOf(token);
    const groups = this.#options.tokens?.groupsOf(digest);
    if (groups !== undefined) return groups.has(group) ? 'Balancer' : 'Forbidden';
    const now = this.#options.clock.now();
    const key = `${digest} ${namespace ?? ''}`;
    const known = this.#answers.get(key);
    if (known !== undefined && now < known.until) return known.access;
    if (!(isWatching ? this.#questionsOfWatches.tryTake(now) : this.#mayAsk(source, now))) return 'Busy';
    // While it is asked, others with this token wait for the same answer.
    const answer = this.#answers.getOrCreate(key, () => ({ access: Promise.resolve('Unknown'), until: now }));
    answer.access = this.#ask(token, namespace);
    answer.until = now + ALLOWED_FOR_MS;
    const found = await answer.access;
    if (found !== 'Allowed') answer.until = found === 'Unknown' ? now : now + REFUSED_FOR_MS;
    return found;
  }

  #mayAsk(source: string, now: number): boolean {
    const ofSource = this.#questionsOf.getOrCreate(source, () => new TokenBucket(QUESTIONS_OF_SOURCE, now));
    return ofSource.tryTake(now) && this.#questions.tryTake(now);
  }

  async #ask(token: string, namespace: string | undefined): Promise<Access> {
    const { tokenReviews, accessReviews, logger } = this.#options;
    const options = { timeoutMs: REVIEW_TIMEOUT_MS };
    try {
      const review = await tokenReviews.create({ metadata: { name: '' }, spec: { token } }, options);
      const { authenticated, user } = review.status ?? {};
      if (authenticated !== true || user === undefined) return 'Unauthenticated';
      const { username, uid, groups, extra } = user;
      const resourceAttributes = {
        group: EXPORT_SERVICES.group,
        version: EXPORT_SERVICES.version,
        resource: EXPORT_SERVICES.plural,
        verb: 'get',
        ...(namespace !== undefined && { namespace }),
      };
      const spec = { user: username, uid, groups, extra, resourceAttributes };
      const { status } = await accessReviews.create({ metadata: { name: '' }, spec }, options);
      return status?.allowed === true ? 'Allowed' : 'Forbidden';
    } catch (error) {
      logger.warn({ reason: messageOf(error) }, 'access to the feed could not be checked');
      return 'Unknown';
    }
  }
}
