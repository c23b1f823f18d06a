/** The forms of lists in sampled requests: which fields their conditions bind and how they sort, without any value. */
import { indexSamplesMax } from '../../../limits/dashboard.ts'
import type { Expr } from '../../../query/expr.ts'
import type { Sort } from '../../../query/sort.ts'
import { suggestIndex } from '../reads/explain/suggest-index.ts'
import type { TableCall } from '../resolve-table.ts'
import { indexesOf } from '../schema/migration-plan.ts'

/** A form of lists for which the declared indexes are not enough. */
export interface ReadSample {
  readonly call: TableCall
  readonly condition: Expr
  readonly sort: Sort
  /** Of the index that would help. */
  readonly fields: readonly string[]
  count: number
}

export interface ReadSamples {
  add(call: TableCall, condition: Expr, sort: Sort): void
  list(): readonly ReadSample[]
  clear(): void
}

/** Keeps the first list of each form, and how many there were; beyond the bound no new forms. */
export function createReadSamples(): ReadSamples {
  const samples = new Map<string, ReadSample>()
  return {
    add(call, condition, sort) {
      const { table, address } = call
      const fields = suggestIndex(
        table,
        { condition, sort },
        indexesOf(table).map((index) => index.fields),
      )
      if (!fields) return
      const key = JSON.stringify([address.namespace, table.name, fields])
      const known = samples.get(key)
      if (known) known.count += 1
      else if (samples.size < indexSamplesMax) samples.set(key, { call, condition, sort, fields, count: 1 })
    },
    list: () => [...samples.values()],
    clear: () => samples.clear(),
  }
}
