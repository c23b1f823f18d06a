/**
 * Which indexes the statements of sampled requests use, for an engine that does not count it itself. Each form of a
 * statement is explained once, without its values; of the form a fingerprint is kept.
 */
import { fingerprint } from '../../base/crypto/hash.ts'
import { statementFormsMax } from '../../limits/dashboard.ts'
import type { Database } from './sql.ts'
import type { SqlText } from './sql-text.ts'

export interface IndexUses {
  /** To be called with the statements of sampled requests. */
  note(namespace: string, database: Database, query: SqlText): void
  /** Null where that is not known: there were more forms of statements than are kept. */
  in(namespace: string): Promise<NotedUses | null>
}

export interface NotedUses {
  readonly statements: number
  readonly indexes: ReadonlySet<string>
}

interface Noted {
  statements: number
  readonly indexes: Set<string>
}

export function createIndexUses(): IndexUses {
  const namespaces = new Map<string, Noted>()
  const forms = new Set<string>()
  const explaining = new Set<Promise<void>>()
  let isFull = false

  async function explain(database: Database, { text, values }: SqlText, noted: Noted): Promise<void> {
    try {
      const plan = await database.explain({ text, values: values.map(() => null) })
      for (const name of plan.indexes) noted.indexes.add(name)
    } catch {
      // The database is closing, or the statement is of a table that a reload has removed.
    }
  }

  return {
    note(namespace, database, query) {
      // Its engine counts them, or the statement finds no rows by itself.
      if (database.dialect.countedUses !== null || query.text.startsWith('INSERT')) return
      const noted = namespaces.get(namespace) ?? { statements: 0, indexes: new Set() }
      namespaces.set(namespace, noted)
      noted.statements += 1
      const form = fingerprint(`${namespace}\n${query.text}`)
      if (isFull || forms.has(form)) return
      if (forms.size >= statementFormsMax) {
        isFull = true
        return
      }
      forms.add(form)
      const running = explain(database, query, noted).finally(() => explaining.delete(running))
      explaining.add(running)
    },
    async in(namespace) {
      await Promise.all(explaining)
      return isFull ? null : (namespaces.get(namespace) ?? { statements: 0, indexes: new Set() })
    },
  }
}
