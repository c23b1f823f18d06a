/**
 * Resolves a bucket name and a caller to a `BucketCall`, which every operation on objects requires. The only module
 * that knows the declared buckets and asks `access/check` for the caller's permissions in them.
 */
import type { Caller } from '../../access/caller.ts'
import { denied, type Permissions, permissionsOf } from '../../access/check.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Log } from '../../base/log.ts'
import { notFound } from '../../errors.ts'
import type { Call, Params } from '../../http/endpoint.ts'
import type { Expr } from '../../query/expr.ts'
import type { Row } from '../../query/matches.ts'

export type BucketDefinitions = ReadonlyMap<string, BucketDefinition>

/** The scope that a service key needs for an action in this bucket. */
export const scopeOf = (bucket: string | undefined, action: 'read' | 'write' | 'delete'): string =>
  `storage:bucket:${bucket}:${action}`

/** The scope that an endpoint requires, by the bucket in its path. */
export const readScope = ({ bucket }: Params): string => scopeOf(bucket, 'read')
export const writeScope = ({ bucket }: Params): string => scopeOf(bucket, 'write')
export const deleteScope = ({ bucket }: Params): string => scopeOf(bucket, 'delete')

/** One caller's permissions in one bucket. */
export interface BucketCall {
  readonly bucket: BucketDefinition
  readonly caller: Caller
  readonly permissions: Permissions
  /** Evaluates a rule's expression for an object; see `RuleEvaluator`. */
  isTrue(rule: Expr, object: Row): boolean | Promise<boolean>
  /** Of the request. */
  readonly requestId: string
  readonly signal: AbortSignal
}

/** What of a request everything that it does is attributed to. */
export type RequestOrigin = Pick<Call, 'requestId' | 'signal'>

export interface Buckets {
  /** The bucket in the path of a call. Throws 404 for one that is not declared. */
  resolve(call: Pick<Call, 'params' | 'caller'> & RequestOrigin): BucketCall
  /** As `resolve`, for a caller other than the request's. */
  resolveFor(caller: Caller, name: string, origin: RequestOrigin): BucketCall
}

export function createBuckets(deps: {
  buckets: () => BucketDefinitions
  ruleEvaluator: RuleEvaluator
  log: Log
}): Buckets {
  const { buckets, ruleEvaluator, log } = deps

  function resolveFor(caller: Caller, name: string, { requestId, signal }: RequestOrigin): BucketCall {
    const bucket = buckets().get(name)
    if (!bucket) throw notFound('Bucket')
    const report = ({ error }: { error: unknown }): void =>
      log.error('access.bucket_rule_failed', { bucket: name, error })
    return {
      bucket,
      caller,
      permissions: permissionsOf(caller, bucket.objects, scopeOf(name, 'read'), ruleEvaluator.tablesOf(null), report),
      isTrue: ruleEvaluator.isTrue,
      requestId,
      signal,
    }
  }

  return { resolveFor, resolve: (call) => resolveFor(call.caller, call.params.bucket ?? '', call) }
}

/** Rejects with 401 or 403 unless the rule's expression is true for the object. */
export async function requireRule(call: BucketCall, rule: Expr, object: Row): Promise<void> {
  if (!(await call.isTrue(rule, object))) throw denied(call.caller)
}
