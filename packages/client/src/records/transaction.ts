/**
 * Batches and transactions: operations on the tables of a namespace that the server executes together or not at all.
 * A transaction also sends the version of each row and each list that it has read, and runs again if one of them has
 * changed.
 */
import { backoffMs, type Call, delay } from '../core/deadline.ts'
import { failure, isPlinthError, PlinthError } from '../core/error.ts'
import type { Request } from '../core/request.ts'
import { applyPatch } from './operators.ts'
import type { Row } from './query.ts'
import { Table } from './table.ts'
import { findVersion } from './versions.ts'

interface Operation {
  readonly table: string
  readonly check?: unknown
  readonly insert?: object & { readonly id?: unknown }
  readonly upsert?: object & { readonly id?: unknown }
  /** Of an upsert: the field by which the record is found. */
  readonly conflictTarget?: string | undefined
  readonly update?: IfMatch & { readonly id: string; readonly data: object }
  readonly delete?: IfMatch & { readonly id: string }
}

export interface BatchResult {
  readonly table: string
  readonly inserted: Row[]
  readonly updated: Row[]
  readonly deleted: string[]
}

interface IfMatch {
  readonly ifMatch?: string | undefined
}

export type FindTable = (name: string) => Table

interface Options extends Call {
  /** How often a transaction runs before its conflict is reported: by default 6 times, so with 5 repetitions. */
  readonly attempts?: number
  /** The server's own: a getter of the jobs that the work of this attempt has enqueued, which are sent with it. */
  readonly jobs?: readonly object[] | undefined
}

/** Executes operations, and enqueues the jobs of the options with them. */
export type Execute = (operations: readonly Operation[], options: Options) => Promise<readonly Row[]>

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
  return new Proxy(own, {
    get(members: Record<PropertyKey, unknown>, name) {
      // `then`: what is awaited must not look like a promise.
      if (typeof name === 'string' && name !== 'then') members[name] ??= make(name)
      return members[name]
    },
  })
}

export const batchesOf = (execute: Execute, findTable: FindTable) => ({
  async batch(build: (tx: object) => void, options: Call = {}): Promise<readonly BatchResult[]> {
    const operations: Operation[] = []
    build(lazyMembers((table) => writesOf(table, operations)))
    const rows = await execute(operations, options)
    const results: Record<string, BatchResult> = {}
    for (const [at, { table, update, delete: gone }] of operations.entries()) {
      results[table] ??= { table, inserted: [], updated: [], deleted: [] }
      const { inserted, updated, deleted } = results[table]
      const row = rows[at] as Row
      if (gone) deleted.push(row.id)
      else (update ? updated : inserted).push(row)
    }
    return Object.values(results)
  },
  async transaction<Result>(work: (tx: object) => Promise<Result>, options: Options = {}): Promise<Result> {
    const { attempts = 6 } = options
    for (let attempt = 1; ; attempt++) {
      const reads: Operation[] = []
      const writes: Operation[] = []
      const members = lazyMembers((name) => readsAndWritesOf(findTable(name), reads, writes, options))
      const result = (async () => work(members))()
      // It may have failed because what it has read changed in between: then only that is checked.
      await result.catch(() => writes.splice(0))
      try {
        await execute([...reads, ...writes], options)
        return result
      } catch (error) {
        if (attempt >= attempts || !isOutdated(error)) throw error
        await delay(backoffMs(attempt - 3), options.signal)
      }
    }
  },
})

/** Whether a condition did not hold; the other conflicts, such as a duplicate, name a field or none. */
const isOutdated = (error: unknown): boolean =>
  isPlinthError(error, 'conflict') && /]":/.test(JSON.stringify(error.data))

/** A table within a transaction: what is read is noted, to be checked with the writes. */
function readsAndWritesOf(table: Table, reads: Operation[], writes: Operation[], options: Call) {
  const { source } = table
  const own = () => writes.filter((one) => one.table === source.table)
  const note = (check: unknown) => reads.push({ table: source.table, check })
  /** The server answers a list with its check, and refuses other queries in this form. */
  const send = async <Data>(method: string, path: string, request: Request): Promise<Data> => {
    if (own().length > 0) throw failure('invalid-input', 'Read lists before writing')
    const query = { ...request.query, check: '1' }
    const answer = await source.send<Data & { check: unknown }>(method, path, { ...request, query })
    note(answer.check)
    return answer
  }
  return Object.assign(new Table({ ...source, send }), writesOf(source.table, writes), {
    /** Of `find`, too. */
    async get(id: string): Promise<Row> {
      let row = await table.find(id, options)
      note(row ? { id, ifMatch: findVersion(row) } : { id, exists: false })
      for (const { insert, upsert = insert, update, delete: gone } of own()) {
        if (upsert?.id === id) row = applyPatch(row, upsert)
        if (update?.id === id) row = applyPatch(row, update.data)
        if (gone?.id === id) row = null
      }
      if (!row) throw new PlinthError({ status: 404, slug: 'not-found' })
      return row
    },
  })
}
