/** Lists the objects that a caller can read, also under rules that query tables of other databases. */
import { required } from '../../access/check.ts'
import { judgedObjectsAtOnce, judgedObjectsMax } from '../../limits/storage.ts'
import { assumeExists, type Expr } from '../../query/expr.ts'
import { partiallyEvaluate, readsOtherTables } from '../../query/matches.ts'
import type { BucketCall } from './buckets.ts'
import { type ObjectRows, type PageRange, type StoredObject, toRuleRow } from './object-rows.ts'

export interface Page {
  readonly objects: readonly StoredObject[]
  /** The key after which the next page starts; null on the last page. */
  readonly next: string | null
}

/** Objects that the read rule allows, without custom metadata and blobs. Throws 401 or 403 if it allows none. */
export async function listReadable(rows: ObjectRows, call: BucketCall, range: PageRange): Promise<Page> {
  const rule = required(call.permissions.read(), call.caller)
  if (readsOtherTables(rule)) return listJudged(rows, call, rule, range)
  const { limit } = range
  const objects = await rows.page(call, rule, { ...range, limit: limit + 1, withMetadata: false })
  const last = objects.length > limit ? objects[limit - 1] : undefined
  return { objects: objects.slice(0, limit), next: last?.key ?? null }
}

/**
 * Lists under a rule that reads tables of another database: objects that satisfy the rest of the rule are read in
 * batches and evaluated one by one, each distinct condition once. The page ends early after `judgedObjectsMax` objects.
 */
async function listJudged(
  rows: ObjectRows,
  call: BucketCall,
  rule: Expr,
  { prefix, after, limit }: PageRange,
): Promise<Page> {
  const condition = assumeExists(rule)
  const answers = new Map<string, boolean>()
  const objects: StoredObject[] = []
  let judged = 0
  for (let last = after; ; ) {
    const batch = { prefix, after: last, limit: judgedObjectsAtOnce, withMetadata: true }
    const some = await rows.page(call, condition, batch)
    for (const object of some) {
      if (judged === judgedObjectsMax) return { objects, next: last }
      const row = toRuleRow(object)
      const question = partiallyEvaluate(rule, row)
      const key = JSON.stringify(question)
      const answer = answers.get(key) ?? (await call.isTrue(question, row))
      answers.set(key, answer)
      if (answer && objects.length === limit) return { objects, next: objects.at(-1)?.key ?? null }
      // The metadata was read for the rule only; a page with it would be large.
      if (answer) objects.push({ ...object, customMetadata: {} })
      last = object.key
      judged += 1
    }
    if (some.length < judgedObjectsAtOnce) return { objects, next: null }
  }
}
