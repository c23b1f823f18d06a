/** The row that hooks returned in place of the one to be written, validated as a body of the service key is. */
import { ApiError, type FieldErrors, withData } from '../../../../errors.ts'
import { recordBytesMax } from '../../../../limits/writes.ts'
import { type CompleteRow, complete } from '../../../../query/computed/computed-fields.ts'
import type { Table } from '../../../../query/table.ts'
import type { HookedRow } from '../../../before-hooks.ts'
import type { RecordRow } from '../../rows.ts'
import { parsePatch } from '../input.ts'

/** What hooks have decided about a row. */
export interface Decision {
  /** The row to write. */
  readonly row: CompleteRow
  /** Names of the fields that hooks have changed, except computed ones. */
  readonly altered: ReadonlySet<string>
  /** See `HookedRow.fail`. */
  fail(problem: string): ApiError
}

const isObject = (value: unknown): value is RecordRow =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/** Names the fields, not only the first as the message of the error does. */
const problemOf = ({ message, data }: ApiError): string =>
  data
    ? Object.entries(data)
        .map(([name, { message: problem }]) => `${name}: ${problem}`)
        .join('; ')
    : message

/**
 * The fields that the hooks changed, with their values; null for one that they removed. A row without a computed field
 * is whole: a hook that builds a row need not compute.
 */
function alteredFields(table: Table, proposed: RecordRow, { row, fail }: HookedRow): Map<string, unknown> {
  if (!isObject(row)) throw fail('It must return an object, the row to store, or nothing')
  if (row.id !== proposed.id)
    throw fail('It must return the whole row with its id, which cannot be changed: { ...row, … }')
  if (row.createdAt !== proposed.createdAt)
    throw fail('It must return the whole row with its createdAt, which cannot be changed: { ...row, … }')
  const altered = new Map<string, unknown>()
  const compare = (name: string): void => {
    // The server sets the time of the write itself.
    if (name !== 'updatedAt' && !isSame(proposed[name], row[name]) && !isLeftOut(table, row, name))
      altered.set(name, row[name] ?? null)
  }
  for (const name of Object.keys(proposed)) compare(name)
  for (const name of Object.keys(row)) if (!Object.hasOwn(proposed, name)) compare(name)
  return altered
}

const isLeftOut = (table: Table, row: RecordRow, name: string): boolean =>
  table.fields.get(name)?.readOnly === true && !Object.hasOwn(row, name)

/**
 * The decision for a row that hooks returned in place of `proposed`. Only fields that they changed are validated:
 * others may be older than the declaration of the table. Throws the error of the hook.
 */
export function parseHooked(table: Table, proposed: RecordRow, hooked: HookedRow): Decision {
  const { fail } = hooked
  const altered = alteredFields(table, proposed, hooked)
  // Without a prototype, a field called `__proto__` is a name like any other.
  const body: RecordRow = Object.create(null)
  for (const [name, value] of altered) body[name] = value
  try {
    const row = { ...proposed }
    for (const [name, { field, operator, value }] of parsePatch({ table, showsHidden: true }, body).changes) {
      if (operator) throw fail(`${name}: must be a value, not an operator`)
      if (field === null && value === null && !Object.hasOwn(hooked.row as RecordRow, name)) delete row[name]
      else row[name] = value
    }
    const decided = complete(table, hasTimesLast(row) ? row : withTimesLast(row))
    if (altered.size > 0 && JSON.stringify(decided).length > recordBytesMax)
      throw fail(`The row is larger than ${recordBytesMax} bytes`)
    return { row: decided, altered: new Set(altered.keys()), fail }
  } catch (error) {
    if (error instanceof ApiError && error.slug === 'invalid-input') throw fail(problemOf(error))
    throw error
  }
}

/** False after fields were added, which follow the times. */
const hasTimesLast = (row: RecordRow): boolean => Object.keys(row).at(-1) === 'updatedAt'

function withTimesLast({ createdAt, updatedAt, ...rest }: RecordRow): RecordRow {
  return { ...rest, createdAt, updatedAt }
}

/** Whether data names fields as the server's own errors do. */
const isFieldErrors = (data: unknown): data is FieldErrors =>
  isObject(data) && Object.values(data).every((one) => isObject(one) && typeof one.message === 'string')

/**
 * The refusal of an operation of a batch names it: fields in `data` get its path, and without `data` it is named
 * itself. Other data stays as the hook gave it.
 */
export function refusalAt(error: ApiError, at: string): ApiError {
  if (at === '') return error
  if (error.data === undefined) return withData(error, { [at]: { code: 'unknown', message: error.message } })
  if (!isFieldErrors(error.data)) return error
  return withData(
    error,
    Object.fromEntries(Object.entries(error.data).map(([name, problem]) => [`${at}.${name}`, problem])),
  )
}
