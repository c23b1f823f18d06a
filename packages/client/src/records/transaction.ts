/**
 * Batches and transactions: operations on the tables of a namespace that the server executes together or not at all.
 * A transaction also sends the version of each row and each list that it has read, and runs again if one of them has
 * changed.
 */
import { backoffMs, type Call, delay } from '../core/deadline.ts'
import { failure, isPlinthError, PlinthError } from '../core/error.ts'
import type { Reply, Request } from '../core/request.ts'
import { applyPatch } from './operators.ts'
import type { Row } from './query.ts'
import { Table } from './table.ts'
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

/** `jobs`: what code of the server enqueues with the transaction. */
type Send = (operations: readonly Operation[], options: Call, jobs?: readonly object[]) => Promise<Reply>

/** `findJobs` is the server's own: the jobs that the work of this attempt has enqueued. */
type Options = Call & { readonly attempts?: number; readonly findJobs?: () => readonly object[] }

/** How often a transaction runs before its conflict is reported, unless the call sets another number: 5 repetitions. */
const attemptsDefault = 6

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
  { attempts = attemptsDefault, findJobs, ...options }: Options = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const reads: Operation[] = []
    const writes: Operation[] = []
    const members = lazyMembers((name) => readsAndWritesOf(findTable(name), reads, writes, options))
    const result = (async () => work(members))()
    // It may have failed because what it has read changed in between: then only that is checked.
    let jobs: readonly object[] = []
    await result.then(
      () => {
        jobs = findJobs?.() ?? jobs
      },
      () => writes.splice(0),
    )
    try {
      const operations = [...reads, ...writes]
      if (operations.length + jobs.length > 0) await send(operations, options, jobs)
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

/** A table within a transaction: what is read is noted, to be checked with the writes. */
function readsAndWritesOf(table: Table, reads: Operation[], writes: Operation[], options: Call) {
  const { source } = table
  const own = () => writes.filter((one) => one.table === source.table)
  const note = (check: unknown) => reads.push({ table: source.table, check })
  /** The server answers a list with its check, and refuses other queries in this form. */
  const send = async (method: string, path: string, request: Request): Promise<Reply> => {
    if (own().length > 0) throw failure('invalid-input', 'Read lists of a table before writing to it')
    const reply = await source.core.send(method, path, { ...request, query: { ...request.query, check: '1' } })
    note((reply.data as { check: unknown }).check)
    return reply
  }
  const find = async (id: string): Promise<Row | null> => {
    let row = await table.find(id, options)
    note({ id, ...(row ? { ifMatch: `${findVersion(row)}` } : { exists: false }) })
    for (const { table: _, ...one } of own()) {
      const [[kind, change]] = Object.entries(one) as [[string, Row & { data: object }]]
      if (change.id === id) row = kind === 'delete' ? null : applyPatch(row, kind === 'update' ? change.data : change)
    }
    return row
  }
  return Object.assign(
    new Table({ ...source, core: Object.assign(Object.create(source.core), { send }) }),
    writesOf(source.table, writes),
    {
      find,
      async get(id: string): Promise<Row> {
        const row = await find(id)
        if (!row) throw new PlinthError({ status: 404, slug: 'not-found', message: 'Record not found' })
        return row
      },
    },
  )
}
