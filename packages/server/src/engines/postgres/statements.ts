/** The port's statements as PostgreSQL prepares them: numbered parameters, and a name for each text. */
import { createLru } from '../../base/concurrency/lru.ts'
import { statementAnswerMs } from '../../limits/postgres.ts'
import { statementCacheEntriesMax } from '../../limits/sqlite.ts'
import { instanceToken, type SqlText } from '../sql/sql-text.ts'
import type { Prepared } from './wire/wire.ts'

/** The port's `?` as `$1`, `$2`…; the instance token becomes `$1` wherever it stands. */
interface Numbered {
  readonly name: string
  readonly text: string
  readonly hasInstance: boolean
  readonly table: string
  readonly tables: ReadonlySet<string>
}

const tablePattern = /(?:FROM|INTO|UPDATE|JOIN) "(\w+)"\."(\w+)"/

const tableIn = (text: string): string => {
  const [, namespace, name] = tablePattern.exec(text) ?? []
  return name === undefined ? '' : `${namespace}.${name}`
}

const qualifiedPattern = /"(\w+)"\."(\w+)"/g

/** Every qualified name in a text, so at least its tables. */
const tablesIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(qualifiedPattern)].map(([, namespace, name]) => `${namespace}.${name}`))

const placeholders = /\?(?:instance)?/g

function numberedText(text: string, name: string): Numbered {
  const hasInstance = text.includes(instanceToken.text)
  let count = hasInstance ? 1 : 0
  const renumbered = text.replace(placeholders, (found) => (found === instanceToken.text ? '$1' : `$${++count}`))
  return { name, text: renumbered, hasInstance, table: tableIn(text), tables: tablesIn(text) }
}

export interface PreparedStatement extends Prepared {
  /** The first table in the text; empty if there is none. */
  readonly table: string
  /** All names of tables in the text, as `namespace.table`, and perhaps others. */
  readonly tables: ReadonlySet<string>
  /** See `SqlText`. */
  readonly isLookup: boolean
}

export interface Statements {
  /** Throws if the statement needs an instance and there is none. */
  prepare(statement: SqlText, instanceId: string | null, answerMs?: number): PreparedStatement
}

export function createStatements(): Statements {
  const known = createLru<string, Numbered>(4 * statementCacheEntriesMax)
  let names = 0

  function numbered(text: string): Numbered {
    let found = known.get(text)
    if (!found) {
      // An evicted text gets a new name: some connections may still have the old one prepared.
      found = numberedText(text, `s${++names}`)
      known.set(text, found)
    }
    return found
  }

  return {
    prepare({ text: source, values, isLookup = false }, instanceId, answerMs = statementAnswerMs) {
      const { name, text, hasInstance, table, tables } = numbered(source)
      if (hasInstance && instanceId === null) throw new Error('The statement needs an instance')
      const parameters = hasInstance ? [instanceId, ...values] : values
      return { name, text, values: parameters, answerMs, table, tables, isLookup }
    },
  }
}
