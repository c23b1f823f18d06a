/** Declared indexes that nothing is known to use: each write updates them. */
import type { Clock } from '../../../base/clock.ts'
import type { IndexUses } from '../../../engines/sql/index-uses.ts'
import type { Database, Sql } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { adviceIndexUnusedMs, indexAdviceMax, indexRowsMin, indexStatementsMin } from '../../../limits/dashboard.ts'
import type { Table } from '../../../query/table.ts'
import type { Namespaces } from '../resolve-table.ts'
import { indexesOf } from '../schema/migration-plan.ts'
import { type IndexAdvice, isRedundant } from './index-advice.ts'

export interface UnusedIndex extends IndexAdvice {
  /** For how long its uses have been counted. */
  readonly forMs: number
}

export interface UnusedIndexesDeps {
  readonly sql: Sql
  readonly namespaces: () => Namespaces
  readonly indexUses: IndexUses
  readonly clock: Clock
}

interface KnownUses {
  readonly indexes: ReadonlySet<string>
  readonly sinceMs: number
}

/**
 * The fields of indexes that are only there to be read, and are not. What reads a redundant one would read the index
 * that makes it redundant.
 */
function unusedOf(table: Table, used: ReadonlySet<string>): readonly (readonly string[])[] {
  const usedFields = indexesOf(table).flatMap(({ name, fields }) => (used.has(name) ? [fields] : []))
  const isRead = (fields: readonly string[]): boolean =>
    usedFields.some((start) => start.every((field, at) => fields[at] === field))
  return table.indexes
    .filter(({ fields, unique }) => !unique && !isRedundant(table, fields) && !isRead(fields))
    .map(({ fields }) => fields)
}

export function createUnusedIndexes({ sql: engine, namespaces, indexUses, clock }: UnusedIndexesDeps) {
  const startedAtMs = clock.now()

  /** Null where too little is known. */
  async function usesIn(namespace: string, database: Database): Promise<KnownUses | null> {
    const { countedUses } = database.dialect
    if (countedUses === null) {
      const noted = await indexUses.in(namespace)
      return noted && noted.statements >= indexStatementsMin ? { indexes: noted.indexes, sinceMs: startedAtMs } : null
    }
    const rows = await database.all<{ name: string; uses: unknown; sinceMs: unknown }>(countedUses(namespace))
    return {
      indexes: new Set(rows.filter(({ uses }) => Number(uses) > 0).map(({ name }) => name)),
      sinceMs: Math.max(0, ...rows.map(({ sinceMs }) => Number(sinceMs))),
    }
  }

  const isLarge = async (database: Database, table: Table): Promise<boolean> => {
    const query = sql`SELECT 1 AS yes FROM ${database.dialect.target(table)} LIMIT 1 OFFSET ${indexRowsMin}`
    return (await database.all(query)).length > 0
  }

  return async (): Promise<readonly UnusedIndex[]> => {
    const found: UnusedIndex[] = []
    for (const { name: namespace, instance, tables } of namespaces().values()) {
      // An instance that is a file of its own has too few rows to matter, and there may be millions.
      if (instance && engine.keepsInstancesApart) continue
      const database = engine.database({ namespace, instanceId: null })
      const known = await usesIn(namespace, database)
      const forMs = known ? clock.now() - known.sinceMs : 0
      if (!known || forMs < adviceIndexUnusedMs) continue
      for (const { table } of tables.values()) {
        const unused = unusedOf(table, known.indexes)
        if (unused.length === 0 || !(await isLarge(database, table))) continue
        for (const fields of unused) found.push({ namespace, table: table.name, fields, forMs })
      }
      if (found.length >= indexAdviceMax) break
    }
    return found.slice(0, indexAdviceMax)
  }
}
