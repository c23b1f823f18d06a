/** Stores changes of cells with the versions that were shown, in batches; records that have changed are left. */
import { isPlinthError } from 'plinth-client'
import { api } from '../../../app/transport.ts'
import { apiPath, type TableAddress } from '../location.ts'
import { getRecord, type Values } from '../record/writes.ts'
import { type Row, rowOf } from '../rows/row.ts'
import type { CellChange, CellProblem } from './plan.ts'

/** Records that one request changes: all of them or none. */
const recordsPerBatch = 200

interface Update {
  readonly row: Row
  readonly data: Values
}

export interface Applied {
  readonly changed: readonly Row[]
  /** What restores the records that were changed. */
  readonly undo: readonly Update[]
  readonly problems: readonly CellProblem[]
}

interface BatchReply {
  readonly updated: readonly Values[]
  readonly versions: { readonly updated: readonly (number | null)[] }
}

const updatesOf = (changes: readonly CellChange[]): Update[] =>
  [...Map.groupBy(changes, ({ row }) => row).entries()].map(([row, cells]) => ({
    row,
    data: Object.fromEntries(cells.map(({ name, value }) => [name, value])),
  }))

/** The values that an update replaces, in full length. */
async function valuesBefore(address: TableAddress, { row, data }: Update): Promise<Values> {
  const names = Object.keys(data)
  const isKnown = names.every((name) => name in row.values && !row.cut.has(name))
  const { values } = isKnown ? row : await getRecord(address, row.id)
  return Object.fromEntries(names.map((name) => [name, values[name] ?? null]))
}

/** What the error of a batch says about its records, by their position. */
function refusedOf(error: unknown): ReadonlyMap<number, { readonly name: string | null; readonly problem: string }> {
  const refused = new Map<number, { readonly name: string | null; readonly problem: string }>()
  const data = isPlinthError(error)
    ? (error.data as Readonly<Record<string, { readonly message: string }>> | undefined)
    : {}
  for (const [path, { message }] of Object.entries(data ?? {})) {
    const [, at, name = null] = /^updates\[(\d+)\](?:\.(.+))?$/s.exec(path) ?? []
    if (at !== undefined) refused.set(Number(at), { name: name === 'ifMatch' ? null : name, problem: message })
  }
  return refused
}

/** Rejects with what concerns no single record; batches before it are stored. */
export async function applyUpdates(address: TableAddress, updates: readonly Update[]): Promise<Applied> {
  const changed: Row[] = []
  const undo: Update[] = []
  const problems: CellProblem[] = []
  for (let at = 0; at < updates.length; at += recordsPerBatch) {
    let batch = updates.slice(at, at + recordsPerBatch)
    const before = new Map<Update, Values>()
    for (const update of batch) before.set(update, await valuesBefore(address, update))
    while (batch.length > 0) {
      try {
        const body = { updates: batch.map(({ row, data }) => ({ id: row.id, data, ifMatch: row.version })) }
        const { updated, versions } = await api.post<BatchReply>(`${apiPath(address)}/batch`, {
          query: { versions: 1 },
          body,
        })
        for (const [index, update] of batch.entries()) {
          const row = rowOf(updated[index] as Values, versions.updated[index])
          changed.push(row)
          undo.push({ row, data: before.get(update) ?? {} })
        }
        break
      } catch (error) {
        const refused = refusedOf(error)
        if (refused.size === 0) throw error
        for (const [index, { name, problem }] of refused)
          for (const field of name === null ? Object.keys(batch[index]?.data ?? {}) : [name])
            problems.push({ record: batch[index]?.row.id ?? '', name: field, problem })
        batch = batch.filter((_, index) => !refused.has(index))
      }
    }
  }
  return { changed, undo, problems }
}

export const applyChanges = (address: TableAddress, changes: readonly CellChange[]): Promise<Applied> =>
  applyUpdates(address, updatesOf(changes))
