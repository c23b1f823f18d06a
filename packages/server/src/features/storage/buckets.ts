/**
 * From a name and a caller to a bucket they may work with. The one place that knows which buckets there are and asks
 * `access/check` what a caller may do in them; whatever is done with an object needs a `BucketCall`.
 */
import type { Caller } from '../../access/caller.ts'
import { denied, type Permissions, permissionsOf } from '../../access/check.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Log } from '../../base/log.ts'
import { notFound } from '../../errors.ts'
import type { Expr } from '../../query/expr.ts'
import type { Row } from '../../query/matches.ts'

export type BucketDefinitions = ReadonlyMap<string, BucketDefinition>

/** What a service key needs for a bucket of this name (CONTRACT "Everywhere"). */
export const scopeOf = (bucket: string | undefined, action: 'read' | 'write' | 'delete'): string =>
  `storage:bucket:${bucket}:${action}`

/** One caller's way to one bucket. */
export interface BucketCall {
  readonly bucket: BucketDefinition
  readonly caller: Caller
  readonly permissions: Permissions
  /** Whether a rule's tree is true of an object; see `RuleEvaluator`. */
  isTrue(rule: Expr, object: Row): boolean | Promise<boolean>
}

export interface Buckets {
  /** Throws 404 for a bucket that is not declared. */
  resolve(name: string, caller: Caller): BucketCall
}

export function createBuckets(deps: {
  buckets: () => BucketDefinitions
  ruleEvaluator: RuleEvaluator
  log: Log
}): Buckets {
  const { buckets, ruleEvaluator, log } = deps
  return {
    resolve(name, caller) {
      const bucket = buckets().get(name)
      if (!bucket) throw notFound('Bucket')
      const report = ({ error }: { error: unknown }): void =>
        log.error('access.bucket_rule_failed', { bucket: name, error })
      return {
        bucket,
        caller,
        permissions: permissionsOf(caller, bucket.objects, scopeOf(name, 'read'), ruleEvaluator.tablesOf(null), report),
        isTrue: ruleEvaluator.isTrue,
      }
    },
  }
}

/** Rejects with 401 or 403 where the tree is not true of the object. */
export async function requireRule(call: BucketCall, rule: Expr, object: Row): Promise<void> {
  if (!(await call.isTrue(rule, object))) throw denied(call.caller)
}
