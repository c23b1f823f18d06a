/**
 * A stored response as a repeated request gets it. What the caller may read can have changed since it was stored, so
 * its records are reduced to what the response to the same write would contain now: status and ids stay, a record that
 * the caller cannot read keeps its timestamps and the fields that the request set, and hidden fields are removed.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import type { FieldErrors } from '../../../errors.ts'
import { isNever } from '../../../query/expr.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import { findReadable, showRecord } from './response.ts'

/** Names of the fields that a request sets in a record. */
export type SentFields = Iterable<string>

/** The records that a response contains. Depends on the request only, so a repeated request has the same. */
export type ResponseShape =
  /** One record; of an upsert with its `action`. */
  | { readonly kind: 'record'; readonly sent: SentFields; readonly hasAction: boolean }
  /** Lists of records, each in the order of the request. */
  | { readonly kind: 'batch'; readonly inserted: readonly SentFields[]; readonly updated: readonly SentFields[] }
  /** The result of each operation on its table. */
  | { readonly kind: 'transaction'; readonly operations: readonly ReplayedOperation[] }
  /** No field of any record: counts, or a confirmation. */
  | { readonly kind: 'plain' }

/** An operation of a transaction; `sent` is empty where its result is not a record. */
export interface ReplayedOperation {
  readonly call: TableCall
  readonly sent: SentFields
}

/** A stored response; `body` is JSON, or null without one. */
export interface StoredBody {
  readonly status: number
  readonly body: string | null
}

type UpsertAction = 'inserted' | 'updated'

interface Context {
  readonly call: TableCall
  readonly readable: ReadonlySet<string>
}

/** A response too large to be stored has ids in place of records. */
const isAbridged = (record: RecordRow): boolean => !Object.hasOwn(record, 'createdAt')

/** The record without the `action` of an upsert, which follows its last field, `updatedAt`. */
function withoutAction(stored: RecordRow): RecordRow {
  if (Object.keys(stored).at(-1) !== 'action') return stored
  const { action: _, ...record } = stored
  return record
}

function showStored({ call, readable }: Context, stored: RecordRow, sent: SentFields, action?: UpsertAction): string {
  if (isAbridged(stored)) return JSON.stringify(stored)
  const record = action === undefined ? stored : withoutAction(stored)
  const { table } = call
  // A field that the table no longer declares cannot be read either.
  const row: RecordRow = Object.fromEntries(
    Object.entries(record).filter(([name]) => table.schemaless || table.fields.has(name)),
  )
  const written = { row, text: JSON.stringify(row), version: 0, sent, ...(action === undefined ? {} : { action }) }
  return showRecord(call, written, readable.has(row.id as string)).text
}

/** A stored error names no field that is hidden from the caller now. `callOf` returns the table of a path. */
function withoutHidden(body: string, callOf: (path: string) => TableCall | undefined): string {
  const error = JSON.parse(body) as { data?: FieldErrors }
  if (error.data === undefined) return body
  // Within a batch, a name has its position before it: `inserts[3].title`.
  const isShown = (path: string): boolean => {
    const call = callOf(path)
    return !call || call.view.showsHidden || !call.table.hidden.has(path.slice(path.lastIndexOf('.') + 1))
  }
  const data = Object.fromEntries(Object.entries(error.data).filter(([name]) => isShown(name)))
  return JSON.stringify({ ...error, data })
}

interface StoredBatch {
  readonly abridged?: true
  readonly inserted: readonly RecordRow[]
  readonly updated: readonly RecordRow[]
  readonly deleted: readonly string[]
  /** Present if the request asked for it. */
  readonly versions?: Readonly<Record<'inserted' | 'updated' | 'deleted', readonly (number | null)[]>>
}

/** The versions of the records that the caller may read now; null for the others. */
function readableVersions(
  { call, readable }: Context,
  { inserted, updated }: StoredBatch,
  versions: NonNullable<StoredBatch['versions']>,
) {
  const ofReadable = (records: readonly RecordRow[], some: readonly (number | null)[]) =>
    records.map(({ id }, at) => (readable.has(id as string) ? (some[at] ?? null) : null))
  return {
    inserted: ofReadable(inserted, versions.inserted),
    updated: ofReadable(updated, versions.updated),
    deleted: isNever(call.permissions.read()) ? versions.deleted.map(() => null) : versions.deleted,
  }
}

/** The body of a stored response as the caller may see it now; read in the transaction that found the response. */
export async function replayedBody(
  tx: Transaction,
  call: TableCall,
  shape: ResponseShape,
  { status, body }: StoredBody,
): Promise<string | null> {
  if (body === null) return null
  if (status >= 400) return withoutHidden(body, (path) => callAt(path, shape) ?? call)
  if (shape.kind === 'plain') return body
  if (shape.kind === 'transaction') return replayedTransaction(tx, shape.operations, body)
  const stored = JSON.parse(body) as RecordRow & StoredBatch
  const records = shape.kind === 'record' ? [stored] : [...stored.inserted, ...stored.updated]
  if (records.every(isAbridged)) return body
  const ids = [...new Set(records.map(({ id }) => id as string))]
  const context = { call, readable: await findReadable({ call, tx }, ids) }
  const action: UpsertAction = status === 201 ? 'inserted' : 'updated'
  if (shape.kind === 'record') return showStored(context, stored, shape.sent, shape.hasAction ? action : undefined)
  const list = (some: readonly RecordRow[], sent: readonly SentFields[]): string =>
    `[${some.map((record, at) => showStored(context, record, sent[at] ?? [])).join(',')}]`
  const [inserted, updated] = [list(stored.inserted, shape.inserted), list(stored.updated, shape.updated)]
  const versions =
    stored.versions && `,"versions":${JSON.stringify(readableVersions(context, stored, stored.versions))}`
  return `{"inserted":${inserted},"updated":${updated},"deleted":${JSON.stringify(stored.deleted)}${versions ?? ''}}`
}

/** The table of an operation of a transaction by the path of an error, such as `operations[3].title`. */
function callAt(path: string, shape: ResponseShape): TableCall | undefined {
  const index = /^operations\[(\d+)\]/.exec(path)?.[1]
  return shape.kind === 'transaction' ? shape.operations[Number(index)]?.call : undefined
}

async function replayedTransaction(
  tx: Transaction,
  operations: readonly ReplayedOperation[],
  body: string,
): Promise<string> {
  const stored = JSON.parse(body) as {
    readonly abridged?: true
    readonly results: readonly RecordRow[]
    readonly versions?: readonly (number | null)[]
  }
  if (stored.abridged) return body
  const contexts = new Map<TableCall, Context>()
  for (const [call, some] of Map.groupBy(stored.results.entries(), ([at]) => operations[at]?.call as TableCall)) {
    const ids = new Set(some.flatMap(([, result]) => (isAbridged(result) ? [] : [result.id as string])))
    contexts.set(call, { call, readable: ids.size > 0 ? await findReadable({ call, tx }, [...ids]) : ids })
  }
  const results: string[] = []
  const versions: (number | null)[] = []
  for (const [at, result] of stored.results.entries()) {
    const { call, sent } = operations[at] as ReplayedOperation
    const context = contexts.get(call) as Context
    const isReadable = isAbridged(result)
      ? !isNever(call.permissions.read())
      : context.readable.has(result.id as string)
    results.push(showStored(context, result, sent))
    versions.push(isReadable ? (stored.versions?.[at] ?? null) : null)
  }
  return `{"results":[${results.join(',')}]${stored.versions ? `,"versions":${JSON.stringify(versions)}` : ''}}`
}
