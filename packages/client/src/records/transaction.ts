/**
 * Batches and transactions: operations on the tables of a namespace that the server executes together or not at all.
 * A transaction also sends the version of each row that it has read, and runs again if one of them has changed.
 */
import { backoffMs, type Call, delay } from '../core/deadline.ts'
import { isPlinthError } from '../core/error.ts'
import type { Reply } from '../core/request.ts'
import type { Row } from './query.ts'
import type { Table } from './table.ts'
import { findVersion, setVersions } from './versions.ts'

interface Operation {
  readonly table: string
  readonly [kind: string]: unknown
}

export interface BatchResult {
  readonly inserted: Row[]
  readonly updated: Row[]
  readonly deleted: string[]
}

interface IfMatch {
  readonly ifMatch?: string
}

export type FindTable = (name: string) => Table

type Send = (operations: readonly Operation[], options: Call) => Promise<Reply>

/** How often a transaction runs before its conflict is reported, unless the call sets another number. */
const attemptsDefault = 5

const writesOf = (table: string, operations: Operation[]) => ({
  insert(row: object) {
    operations.push({ table, insert: row })
  },
  upsert(row: object, { on }: { readonly on?: string } = {}) {
    operations.push({ table, upsert: row, conflictTarget: on })
  },
  update(id: string, data: object, { ifMatch }: IfMatch = {}) {
    operations.push({ table, update: { id, data, ifMatch } })
  },
  delete(id: string, { ifMatch }: IfMatch = {}) {
    operations.push({ table, delete: { id, ifMatch } })
  },
})

/** An object whose members are made on first use, by name. */
export const lazyMembers = <Member>(make: (name: string) => Member, own: object = {}): object => {
  const made = new Map<string, Member>()
  return new Proxy(own, {
    get(target, name) {
      // `then`: what is awaited must not look like a promise.
      if (typeof name === 'symbol' || name in target || name === 'then') return Reflect.get(target, name)
      const member = made.get(name) ?? make(name)
      made.set(name, member)
      return member
    },
  })
}

export async function runBatch(
  send: Send,
  build: (tx: object) => void,
  options: Call = {},
): Promise<readonly BatchResult[]> {
  const operations: Operation[] = []
  build(lazyMembers((table) => writesOf(table, operations)))
  const results = new Map<string, BatchResult>()
  const rows = operations.length > 0 ? resultsOf(await send(operations, options)) : []
  for (const [at, { table, ...operation }] of operations.entries()) {
    const result = results.get(table) ?? { inserted: [], updated: [], deleted: [] }
    results.set(table, result)
    const row = rows[at] as Row
    if ('delete' in operation) result.deleted.push(row.id)
    else result['update' in operation ? 'updated' : 'inserted'].push(row)
  }
  return [...results.values()]
}

const resultsOf = ({ data }: Reply): Row[] => {
  const { results, versions } = data as { results: Row[]; versions?: (number | null)[] }
  return setVersions(results, versions)
}

export async function runTransaction<Result>(
  send: Send,
  findTable: FindTable,
  work: (tx: object) => Promise<Result>,
  { attempts = attemptsDefault, ...options }: Call & { readonly attempts?: number } = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    // What was read is from before every write, in whatever order the work reads and writes.
    const checks: Operation[] = []
    const writes: Operation[] = []
    const members = lazyMembers((name) => readsAndWritesOf(name, findTable(name), checks, writes, options))
    const result = await work(members)
    try {
      const operations = [...checks, ...writes]
      if (operations.length > 0) await send(operations, options)
      return result
    } catch (error) {
      if (attempt >= attempts || !isOutdated(error)) throw error
      await delay(backoffMs(attempt - 3), options.signal)
    }
  }
}

/** Whether a condition did not hold; the other conflicts, such as a duplicate, name a field or none. */
const isOutdated = (error: unknown): boolean =>
  isPlinthError(error, 'conflict') && Object.keys(error.data ?? {}).some((path) => path.endsWith(']'))

function readsAndWritesOf(name: string, table: Table, checks: Operation[], writes: Operation[], options: Call) {
  const find = async (id: string): Promise<Row | null> => {
    const row = await table.find(id, options)
    const version = row && findVersion(row)
    const condition = typeof version === 'number' ? { ifMatch: `${version}` } : { exists: row !== null }
    checks.push({ table: name, check: { id, ...condition } })
    return row
  }
  return {
    ...writesOf(name, writes),
    find,
    async get(id: string): Promise<Row> {
      // Outside of the transaction's operations, `get` rejects for a row that does not exist.
      return (await find(id)) ?? table.get(id, options)
    },
  }
}
