import { createHash } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { KubeObject } from '../kube/objects.ts';
import type { ResourceClient, ResourceKind } from '../kube/resource.ts';
import type { Logger } from '../logger.ts';
import { LruMap } from '../lru-map.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { KindAccess } from './access.ts';
import type { ControllerContext } from './controller-definition.ts';

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

/** What a controller declares that checks tokens. */
export const TOKEN_ACCESS: readonly KindAccess[] = [
  { kind: TOKEN_REVIEWS, verbs: ['create'], use: 'TokenAccess: who sends a token.', notConfined: 'stores nothing' },
  {
    kind: SUBJECT_ACCESS_REVIEWS,
    verbs: ['create'],
    use: 'TokenAccess: what the owner of a token may read.',
    notConfined: 'stores nothing',
  },
];

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
 * Whether the owner of a token may do something. `Unauthenticated`: the token is unknown. `Forbidden`: its owner may not.
 * `Busy`: too many unknown tokens come. `Unknown`: the API server did not answer, so the request is refused.
 */
export type TokenVerdict = 'Allowed' | 'Unauthenticated' | 'Forbidden' | 'Busy' | 'Unknown';

/** What somebody wants to do, as in a SubjectAccessReview. */
export interface ResourceAttributes {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly verb: string;
  /** Not set: in all namespaces. */
  readonly namespace?: string;
  /** Not set: with all objects. */
  readonly name?: string;
}

/** Who asks. */
export interface TokenCaller {
  readonly token: string;
  /** Address that the request comes from. */
  readonly source: string;
  /** Its former answer was good, and it asks whether it still is. */
  readonly isKnown?: boolean;
}

export interface TokenAccessOptions {
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
/** Questions about callers that are known: these are 500 at most, and each is asked about once a minute. */
const QUESTIONS_OF_KNOWN = { burst: 100, refillMs: 50 };
const REVIEW_TIMEOUT_MS = 5_000;

interface Answer {
  verdict: Promise<TokenVerdict>;
  /** On the clock. */
  until: number;
}

/** The token of an `Authorization` header, `Bearer …`; undefined: it has none that can be one. */
export function bearerOf(header: string | undefined): string | undefined {
  const token = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? '')?.[1];
  return token === undefined || token.length > MAX_TOKEN_LENGTH ? undefined : token;
}

/**
 * Asks the API server what the owner of a token may do, by a TokenReview and a SubjectAccessReview. Answers are kept for
 * a minute, and questions are limited: for each source, and for all together.
 */
export class TokenAccess {
  readonly #options: TokenAccessOptions;
  /** Answers by token and attributes. */
  readonly #answers = new LruMap<Answer>(MAX_ANSWERS);
  readonly #questions: TokenBucket;
  readonly #questionsOf = new LruMap<TokenBucket>(MAX_SOURCES);
  readonly #questionsOfKnown: TokenBucket;

  constructor(options: TokenAccessOptions) {
    this.#options = options;
    this.#questions = new TokenBucket(QUESTIONS, options.clock.now());
    this.#questionsOfKnown = new TokenBucket(QUESTIONS_OF_KNOWN, options.clock.now());
  }

  /** Never rejects. */
  async of({ token, source, isKnown = false }: TokenCaller, attributes: ResourceAttributes): Promise<TokenVerdict> {
    const now = this.#options.clock.now();
    const { group, resource, verb, namespace = '', name = '' } = attributes;
    // The token itself is not kept.
    const digest = createHash('sha256').update(token).digest('base64url');
    const key = [digest, group, resource, verb, namespace, name].join(' ');
    const known = this.#answers.get(key);
    if (known !== undefined && now < known.until) return known.verdict;
    if (!(isKnown ? this.#questionsOfKnown.tryTake(now) : this.#mayAsk(source, now))) return 'Busy';
    // While it is asked, others with this token wait for the same answer.
    const answer = this.#answers.getOrCreate(key, () => ({ verdict: Promise.resolve('Unknown'), until: now }));
    answer.verdict = this.#ask(token, attributes);
    answer.until = now + ALLOWED_FOR_MS;
    const found = await answer.verdict;
    if (found !== 'Allowed') answer.until = found === 'Unknown' ? now : now + REFUSED_FOR_MS;
    return found;
  }

  #mayAsk(source: string, now: number): boolean {
    const ofSource = this.#questionsOf.getOrCreate(source, () => new TokenBucket(QUESTIONS_OF_SOURCE, now));
    return ofSource.tryTake(now) && this.#questions.tryTake(now);
  }

  async #ask(token: string, resourceAttributes: ResourceAttributes): Promise<TokenVerdict> {
    const { tokenReviews, accessReviews, logger } = this.#options;
    const options = { timeoutMs: REVIEW_TIMEOUT_MS };
    try {
      const review = await tokenReviews.create({ metadata: { name: '' }, spec: { token } }, options);
      const { authenticated, user } = review.status ?? {};
      if (authenticated !== true || user === undefined) return 'Unauthenticated';
      const { username, uid, groups, extra } = user;
      const spec = { user: username, uid, groups, extra, resourceAttributes };
      const { status } = await accessReviews.create({ metadata: { name: '' }, spec }, options);
      return status?.allowed === true ? 'Allowed' : 'Forbidden';
    } catch (error) {
      const { resource, verb } = resourceAttributes;
      logger.warn({ resource, verb, reason: messageOf(error) }, 'the rights of a token could not be checked');
      return 'Unknown';
    }
  }
}

/** The check of tokens of a controller that declares `TOKEN_ACCESS`. */
export function tokenAccessOf({
  resources,
  clock,
  logger,
}: Pick<ControllerContext, 'resources' | 'clock' | 'logger'>): TokenAccess {
  return new TokenAccess({
    tokenReviews: resources.of<TokenReviewObject>(TOKEN_REVIEWS),
    accessReviews: resources.of<AccessReviewObject>(SUBJECT_ACCESS_REVIEWS),
    clock,
    logger,
  });
}
