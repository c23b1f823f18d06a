/** The row that hooks returned in place of the one to be written, validated as a body of the service key is. */
import { isJsonObject } from '../../../../base/text/json.ts'
import { ApiError, type FieldErrors, withData } from '../../../../errors.ts'
import { recordBytesMax } from '../../../../limits/writes.ts'
import { type CompleteRow, complete } from '../../../../query/computed/computed-fields.ts'
import type { Table } from '../../../../query/table.ts'
import type { HookedRow, RowDifference } from '../../../before-hooks.ts'
import { isSameValue, problemOf } from '../../../hooked-values.ts'
import type { RecordRow } from '../../rows.ts'
import { parsePatch } from '../input.ts'

/** What hooks have decided about a row. */
export interface Decision {
  /** The row to write. */
  readonly row: CompleteRow
  /** The row as JSON; null if it is not known yet. */
  readonly text: string | null
  /** Names of the fields that hooks have changed, except computed ones. */
  readonly altered: ReadonlySet<string>
  /** See `HookedRow.fail`. */
  fail(problem: string): ApiError
}

/**
 * The fields that the hooks changed, with their values; null for one that they removed. A row without a computed field
 * is whole: a hook that builds a row need not compute.
 */
function alteredFields(table: Table, proposed: RecordRow, { changed, removed }: RowDifference): RecordRow {
  // Without a prototype, a field called `__proto__` is a name like any other.
  const altered: RecordRow = Object.create(null)
  // The server sets the time of the write itself.
  for (const name of Object.keys(changed))
    if (name !== 'updatedAt' && !isSameValue(proposed[name], changed[name])) altered[name] = changed[name]
  for (const name of removed)
    if (name !== 'updatedAt' && !isSameValue(proposed[name], null) && !table.fields.get(name)?.readOnly)
      altered[name] = null
  return altered
}

/**
 * The decision for a row that hooks returned in place of `proposed`. Only fields that they changed are validated:
 * others may be older than the declaration of the table. Throws the error of the hook.
 */
export function parseHooked(table: Table, proposed: RecordRow, hooked: HookedRow): Decision {
  const { difference, fail } = hooked
  if (!difference) throw fail('It must return an object, the row to store, or nothing')
  const altered = alteredFields(table, proposed, difference)
  for (const name of ['id', 'createdAt'])
    if (Object.hasOwn(altered, name))
      throw fail(`It must return the whole row with its ${name}, which cannot be changed: { ...row, … }`)
  const names = Object.keys(altered)
  if (names.length === 0) return { row: complete(table, proposed), text: null, altered: new Set(), fail }
  try {
    const row = { ...proposed }
    for (const [name, { field, operator, value }] of parsePatch({ table, showsHidden: true }, altered).changes) {
      if (operator) throw fail(`${name}: must be a value, not an operator`)
      if (field === null && value === null && !Object.hasOwn(difference.changed, name)) delete row[name]
      else row[name] = value
    }
    // Fields that were added follow the times.
    const isLonger = names.some((name) => !Object.hasOwn(proposed, name))
    const decided = complete(table, isLonger ? withTimesLast(row) : row)
    const text = JSON.stringify(decided)
    if (text.length > recordBytesMax) throw fail(`The row is larger than ${recordBytesMax} bytes`)
    return { row: decided, text, altered: new Set(names), fail }
  } catch (error) {
    if (error instanceof ApiError && error.slug === 'invalid-input') throw fail(problemOf(error))
    throw error
  }
}

function withTimesLast({ createdAt, updatedAt, ...rest }: RecordRow): RecordRow {
  return { ...rest, createdAt, updatedAt }
}

/** Whether data names fields as the server's own errors do. */
const isFieldErrors = (data: unknown): data is FieldErrors =>
  isJsonObject(data) && Object.values(data).every((one) => isJsonObject(one) && typeof one.message === 'string')

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
