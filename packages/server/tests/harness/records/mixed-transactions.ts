/**
 * Transactions of a random workload, with the same code for clients, functions and jobs. Each one that writes stores
 * what it has read and left in a row of the table `marks`, so that the database has the history of what was committed.
 */
import { numbersFrom } from '../times.ts'

/** Of one transaction: a transfer between accounts, or an edit of lists of rows. */
export interface Plan {
  readonly id: string
  readonly kind: 'transfer' | 'edit'
  readonly seed: number
}

/** States by account or list. */
type States = Readonly<Record<string, string>>

/** What a run of a plan has read and left. */
export interface Mark {
  readonly id: string
  readonly plan: string
  readonly reads: States
  readonly left: States
}

interface Row {
  readonly id: string
  readonly by: string
  readonly key: string
  readonly at: number
  readonly balance: number
}

interface Query {
  where(field: string, operator: string, value: unknown): Query
  sort(field: string): Query
  limit(count: number): Query
  list(): Promise<{ readonly items: readonly Row[] }>
}

interface TransactionTable extends Query {
  get(id: string): Promise<Row>
  insert(row: object): void
  update(id: string, data: object): void
  delete(id: string): void
}

type Tables = Readonly<Record<'accounts' | 'items' | 'others' | 'marks', TransactionTable>>

/** A database of the client, as the functions of `configText` and its callers have it. */
export interface Database {
  transaction<Result>(work: (tx: Tables) => Promise<Result>, options: { attempts: number }): Promise<Result>
}

const accountsMax = 10
export const balanceOfEach = 100
export const accountIds = Array.from({ length: accountsMax }, (_, n) => `account-${n}`)
/** The tables of lists by their keys. */
export const listTables = { a: 'items', b: 'items', c: 'others', d: 'others' } as const
type Key = keyof typeof listTables
const keys = Object.keys(listTables) as Key[]

const open = '{ read: true, insert: true, update: true, delete: true }'
const listTable = `{ schema: { key: { type: 'string' }, at: { type: 'number' }, by: { type: 'string' } }, access: ${open} }`
const unlimited = '{ requests: 10_000_000 }'
export const configText = `export default {
  databases: { shared: { tables: {
    accounts: { schema: { balance: { type: 'number' }, by: { type: 'string' } }, access: ${open} },
    items: ${listTable},
    others: ${listTable},
    marks: { schema: { plan: { type: 'string' }, reads: { type: 'text' }, left: { type: 'text' } }, access: ${open} },
  } } },
  rateLimits: { global: ${unlimited}, db: ${unlimited}, functions: ${unlimited} },
}`
export const functionsText = `import { functionsFor } from 'plinth/functions'
import { runPlan } from ${JSON.stringify(import.meta.path)}
const { queue, rpc } = functionsFor()
export const call = rpc({ caller: 'anyone', timeout: '10m' }, (plan, ctx) => runPlan(ctx.service.db('shared'), plan))
export const work = queue('work', { retries: 100, timeout: '10m' }, (plan, ctx) =>
  runPlan(ctx.service.db('shared'), plan))
`

/** The state of a list: each transaction that changes it leaves one that it never had. */
export const stateOf = (rows: readonly Row[]): string => rows.map(({ id, by }) => `${id} by ${by}`).join(', ')

/** Moves money from an account that has it to another one. */
async function transfer(
  tx: Tables,
  by: string,
  next: (below: number) => number,
): Promise<Pick<Mark, 'reads' | 'left'>> {
  const from = next(accountsMax)
  const [source, target] = [from, (from + 1 + next(accountsMax - 1)) % accountsMax].map((n) => accountIds[n] as string)
  const amount = 1 + next(60)
  const paying = await tx.accounts.get(source as string)
  const reads = { [paying.id]: paying.by }
  if (paying.balance < amount) return { reads, left: {} }
  const paid = await tx.accounts.get(target as string)
  tx.accounts.update(paying.id, { balance: paying.balance - amount, by })
  tx.accounts.update(paid.id, { balance: paid.balance + amount, by })
  return { reads: { ...reads, [paid.id]: paid.by }, left: { [paying.id]: by, [paid.id]: by } }
}

/** Reads the lists of some keys; a list has its rows in the order of `at`. */
async function readLists(tx: Tables, wanted: readonly Key[]): Promise<ReadonlyMap<Key, Row[]>> {
  const lists = new Map<Key, Row[]>(wanted.map((key) => [key, []]))
  for (const name of ['items', 'others'] as const) {
    const own = wanted.filter((key) => listTables[key] === name)
    if (own.length === 0) continue
    const { items } = await tx[name].where('key', 'in', own).sort('at').limit(1000).list()
    for (const row of items) lists.get(row.key as Key)?.push(row)
  }
  return lists
}

/** Rows beyond this leave a list rather than come to it. */
const listRowsMax = 6

/**
 * Reads some lists, and appends to them, removes their first rows, moves these to other lists, and marks rows. What is
 * appended is last, and the last row is never removed: so no list is ever again as it was before.
 */
async function edit(tx: Tables, by: string, next: (below: number) => number): Promise<Pick<Mark, 'reads' | 'left'>> {
  const wanted = [...new Set(Array.from({ length: 1 + next(3) }, () => keys[next(keys.length)] as Key))]
  const lists = await readLists(tx, wanted)
  const reads = Object.fromEntries([...lists].map(([key, rows]) => [key, stateOf(rows)]))
  for (const [key, rows] of lists) {
    const table = tx[listTables[key]]
    const [first] = rows
    const action = rows.length > listRowsMax ? 2 + next(2) : next(6)
    const atOf = (list: readonly Row[]): number => (list.at(-1)?.at ?? 0) + 1
    if (action < 2) {
      const row = { id: `${by}-${key}`, key, at: atOf(rows), by }
      table.insert(row)
      rows.push({ ...row, balance: 0 })
    } else if (first && action < 4 && rows.length > 1) {
      rows.shift()
      const to = wanted.find((other) => other !== key && listTables[other] === listTables[key])
      const target = action === 3 && to ? lists.get(to) : undefined
      if (to && target) {
        const moved = { key: to, at: atOf(target), by }
        table.update(first.id, moved)
        target.push({ ...first, ...moved })
      } else table.delete(first.id)
    } else if (action === 4) {
      const marked = rows[next(Math.max(1, rows.length))]
      if (!marked) continue
      table.update(marked.id, { by })
      rows.splice(rows.indexOf(marked), 1, { ...marked, by })
    }
  }
  const left = Object.fromEntries([...lists].map(([key, rows]) => [key, stateOf(rows)]))
  return { reads, left: Object.fromEntries(Object.entries(left).filter(([key, state]) => state !== reads[key])) }
}

/** Runs a plan in a transaction until it is committed. */
export function runPlan(db: Database, { id: plan, kind, seed }: Plan): Promise<Mark> {
  return db.transaction(
    async (tx) => {
      const id = `${plan}-${crypto.randomUUID()}`
      const mark = { id, plan, ...(await (kind === 'transfer' ? transfer : edit)(tx, id, numbersFrom(seed))) }
      const [reads, left] = [mark.reads, mark.left].map((states) => JSON.stringify(states))
      if (left !== '{}') tx.marks.insert({ id, plan, reads, left })
      return mark
    },
    { attempts: 1000 },
  )
}
