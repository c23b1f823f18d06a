/**
 * Parses the bodies of inserts and updates and validates them against a table, without the database. Errors name all
 * invalid fields at once. A field hidden from the caller gives the same error as one that does not exist.
 */
import { datetimeMaxMs, findDatetime, formatDatetime } from '../../../base/text/datetime.ts'
import { isJsonObject } from '../../../base/text/json.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { accessDenied, type FieldError, type FieldErrorCode, invalid } from '../../../errors.ts'
import { fieldErrorsMax, recordIdCharsMax } from '../../../limits/api.ts'
import { type CompleteRow, complete } from '../../../query/computed/computed-fields.ts'
import { findUndeclaredNameError } from '../../../query/field-name.ts'
import type { TableView } from '../../../query/filter.ts'
import { findLocation, locationShape } from '../../../query/geo/sphere.ts'
import type { Row } from '../../../query/matches.ts'
import { builtInFieldNames, type Field, type Table } from '../../../query/table.ts'
import type { RecordRow } from '../rows.ts'

export type Body = Readonly<Record<string, unknown>>

const recordIdPattern = new RegExp(`^[A-Za-z0-9_-]{1,${recordIdCharsMax}}$`)

/** Path segments that follow a table in the API and so cannot be record ids. */
const reservedRecordIds: ReadonlySet<string> = new Set(['count', 'search', 'batch', 'batch-by-filter'])

export const isRecordId = (text: string): boolean => recordIdPattern.test(text)

class InvalidValue extends Error {
  constructor(readonly error: FieldError) {
    super(error.message)
  }
}

const invalidValue = (code: FieldErrorCode, message: string): InvalidValue => new InvalidValue({ code, message })

const isOperator = (value: unknown): value is { $op: unknown; value?: unknown } =>
  isJsonObject(value) && Object.hasOwn(value, '$op')

/** Checks all texts in a JSON value, keys included, and that all numbers are finite. */
function isStorableJson(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isStorableJson)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).every(([key, inner]) => isStorableText(key) && isStorableJson(inner))
  return true
}

function checkText(field: Field, value: unknown): string {
  if (typeof value !== 'string') throw invalidValue('type', 'must be a string')
  if (!isStorableText(value)) throw invalidValue('type', 'must be text without NUL or unpaired surrogates')
  if (field.name === 'id' && reservedRecordIds.has(value))
    throw invalidValue('pattern', 'is reserved for a path of the API')
  if (field.name === 'id' && !isRecordId(value))
    throw invalidValue('pattern', `must be 1 to ${recordIdCharsMax} characters of A-Z, a-z, 0-9, _ and -`)
  if (field.min !== undefined || field.max !== undefined) {
    const length = codePointLength(value)
    if (field.min !== undefined && length < field.min)
      throw invalidValue('min', `must have at least ${field.min} characters`)
    if (field.max !== undefined && length > field.max)
      throw invalidValue('max', `must have at most ${field.max} characters`)
  }
  if (field.pattern && !field.pattern.test(value)) throw invalidValue('pattern', `must match ${field.pattern.source}`)
  return value
}

function checkNumber(field: Field, value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidValue('type', 'must be a finite number')
  if (field.min !== undefined && value < field.min) throw invalidValue('min', `must be at least ${field.min}`)
  if (field.max !== undefined && value > field.max) throw invalidValue('max', `must be at most ${field.max}`)
  // Engines differ in whether they keep the sign of zero.
  return value === 0 ? 0 : value
}

/** Validates a value that is not null and returns its stored form. */
function checkPresent(field: Field, value: unknown): unknown {
  switch (field.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw invalidValue('type', 'must be true or false')
      return value
    case 'datetime': {
      const normal = typeof value === 'string' ? findDatetime(value) : null
      if (normal === null) throw invalidValue('type', 'must be an ISO 8601 date or timestamp')
      return normal
    }
    case 'json':
      if (!isStorableJson(value)) throw invalidValue('type', 'must not contain NUL or unpaired surrogates')
      return value
    case 'number':
      return checkNumber(field, value)
    case 'geo': {
      const location = findLocation(value)
      if (!location) throw invalidValue('type', `must be ${locationShape}`)
      return location
    }
    default:
      return checkText(field, value)
  }
}

function checkDeclared(field: Field, value: unknown): unknown {
  if (value === null) {
    if (field.required) throw invalidValue('required', 'is required')
    return null
  }
  const checked = checkPresent(field, value)
  if (field.enum && !field.enum.includes(checked as string | number))
    throw invalidValue('enum', `must be one of ${field.enum.join(', ')}`)
  return checked
}

function checkUndeclared(value: unknown): unknown {
  if (!isStorableJson(value)) throw invalidValue('type', 'must not contain NUL or unpaired surrogates')
  return value
}

interface Operator {
  readonly $op: 'increment' | 'deleteField'
  /** What `increment` adds; 0 otherwise. */
  readonly by: number
}

/** Validates an operator object as far as possible without the row. */
function checkOperator(field: Field | null, { $op, value }: { $op: unknown; value?: unknown }): Operator {
  if ($op === 'increment') {
    if (field && field.type !== 'number') throw invalidValue('operator', 'increment applies to number fields only')
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw invalidValue('operator', 'increment requires a finite number as value')
    return { $op, by: value }
  }
  if ($op !== 'deleteField') throw invalidValue('operator', 'unknown $op: use increment or deleteField')
  if (field?.required) throw invalidValue('operator', 'is required and cannot be deleted')
  return { $op, by: 0 }
}

/** The value after an operator; `before` is the field's current value. */
function applyOperator(field: Field | null, before: unknown, operator: Operator): unknown {
  if (operator.$op === 'deleteField') return null
  if (before !== null && typeof before !== 'number') throw invalidValue('operator', 'increment applies to numbers only')
  const sum = (before ?? 0) + operator.by
  if (!Number.isFinite(sum)) throw invalidValue('operator', 'the sum is out of range')
  return field ? checkDeclared(field, sum) : sum
}

/** Collects a bounded number of errors by field. */
class FieldErrorList {
  /** The path in a batch, such as `inserts[3].`. */
  readonly #prefix: string
  #errors: Record<string, FieldError> | null = null
  #found = 0

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  get isFull(): boolean {
    return this.#found >= fieldErrorsMax
  }

  /** Adds an `InvalidValue`; throws any other error. */
  add(name: string, error: unknown): void {
    if (!(error instanceof InvalidValue)) throw error
    if (this.isFull) return
    // Without a prototype, a field called `__proto__` is a name like any other.
    this.#errors ??= Object.create(null) as Record<string, FieldError>
    this.#errors[this.#prefix + name] = error.error
    this.#found += 1
  }

  /** Throws 400 if there are any. */
  finish(): void {
    if (this.#errors) throw invalid(this.#errors)
  }
}

/** Names in errors are cut to this: those of requests may have any length. */
const shownNameChars = 128

/**
 * The declared field; null for an undeclared one of a schemaless table. Throws if it is unknown, hidden or computed.
 */
function knownField({ table, showsHidden }: TableView, name: string): Field | null {
  const field = table.fields.get(name)
  if (field && (showsHidden || !table.hidden.has(name))) {
    if (field.readOnly) throw invalidValue('operator', 'is computed from other fields and cannot be written')
    return field
  }
  if (field || !table.schemaless) throw invalidValue('unknown', 'unknown field')
  const reason = findUndeclaredNameError(name)
  if (reason !== null) throw invalidValue('unknown', reason)
  return null
}

export interface Generated {
  readonly id: () => string
  readonly nowMs: number
}

/**
 * Builds the complete record for an insert, with defaults and generated fields. Throws 400 naming all invalid fields.
 */
export function parseInsert(view: TableView, body: Body, generated: Generated, prefix = ''): CompleteRow {
  const { table } = view
  const given: RecordRow = {}
  const errors = new FieldErrorList(prefix)
  for (const name of Object.keys(body)) {
    if (errors.isFull) break
    try {
      const field = knownField(view, name)
      const value = body[name]
      if (isOperator(value)) throw invalidValue('operator', 'operators apply to updates only')
      given[name] = field ? checkDeclared(field, value) : checkUndeclared(value)
    } catch (error) {
      errors.add(name.slice(0, shownNameChars), error)
    }
  }
  const now = formatDatetime(generated.nowMs)
  const record: RecordRow = { id: given.id ?? generated.id() }
  for (const field of table.fields.values()) {
    const { name } = field
    if (builtInFieldNames.has(name)) continue
    const value = Object.hasOwn(given, name) ? given[name] : (field.default ?? null)
    if (value === null && field.required && !Object.hasOwn(body, name)) {
      // Only a service key can set the field, and other callers must not learn that it exists.
      if (table.hidden.has(name) && !view.showsHidden) throw accessDenied()
      errors.add(name, invalidValue('required', 'is required'))
    }
    record[name] = value
  }
  if (table.schemaless) for (const name of Object.keys(given)) if (!table.fields.has(name)) record[name] = given[name]
  record.createdAt = given.createdAt ?? now
  record.updatedAt = given.updatedAt ?? now
  errors.finish()
  return complete(table, record)
}

interface Change {
  /** Null for an undeclared field. */
  readonly field: Field | null
  readonly operator: Operator | null
  /** In stored form; unused if there is an operator. */
  readonly value: unknown
}

/** A parsed update body. */
export interface Patch {
  readonly changes: ReadonlyMap<string, Change>
  /** Path in a batch, such as `updates[3].`, for error messages. */
  readonly prefix: string
}

/** Fields that a patch sets to a given value, not to one computed from the stored value. */
export function* sentBy(patch: Patch | undefined): Iterable<string> {
  for (const [name, { operator }] of patch?.changes ?? []) if (operator?.$op !== 'increment') yield name
}

function parseChange(field: Field | null, name: string, value: unknown): Change {
  if (!isOperator(value))
    return { field, operator: null, value: field ? checkDeclared(field, value) : checkUndeclared(value) }
  if (builtInFieldNames.has(name)) throw invalidValue('operator', 'cannot be changed')
  return { field, operator: checkOperator(field, value), value: null }
}

/** Parses an update's body. Throws 400 that names all invalid fields. */
export function parsePatch(view: TableView, body: Body, prefix = ''): Patch {
  const changes = new Map<string, Change>()
  const errors = new FieldErrorList(prefix)
  for (const name of Object.keys(body)) {
    if (errors.isFull) break
    try {
      changes.set(name, parseChange(knownField(view, name), name, body[name]))
    } catch (error) {
      errors.add(name.slice(0, shownNameChars), error)
    }
  }
  errors.finish()
  return { changes, prefix }
}

/** How a patch treats immutable fields: an update rejects a different value, an upsert keeps the stored one. */
export type FixedFields = 'refuse' | 'keep'

export interface Applied {
  readonly after: CompleteRow
  /** Names of the changed fields, except computed ones. */
  readonly changed: readonly string[]
}

/** Applies the change of one field; returns whether it is of a field that can be changed. Throws `InvalidValue`. */
function applyChange(
  before: Row,
  after: RecordRow,
  name: string,
  { field, operator, value }: Change,
  fixed: FixedFields,
): boolean {
  if (name === 'updatedAt') return false
  if (name === 'id' || name === 'createdAt') {
    if (fixed === 'refuse' && value !== before[name]) throw invalidValue('operator', 'cannot be changed')
    return false
  }
  const old = Object.hasOwn(before, name) ? before[name] : null
  after[name] = operator ? applyOperator(field, old, operator) : value
  if (field === null && operator?.$op === 'deleteField') delete after[name]
  return true
}

/** Applies the patch to a row of a table and sets a new `updatedAt`. Throws 400 that names all invalid fields. */
export function applyPatch(
  table: Table,
  before: Row,
  patch: Patch,
  nowMs: number,
  fixed: FixedFields = 'refuse',
): Applied {
  const errors = new FieldErrorList(patch.prefix)
  const { createdAt, updatedAt, ...rest } = before
  const after: RecordRow = rest
  const changed: string[] = []
  for (const [name, change] of patch.changes) {
    if (errors.isFull) break
    try {
      if (applyChange(before, after, name, change, fixed)) changed.push(name)
    } catch (error) {
      errors.add(name, error)
    }
  }
  errors.finish()
  after.createdAt = createdAt
  after.updatedAt = nextUpdatedAt(updatedAt as string, nowMs)
  return { after: complete(table, after), changed: [...changed, 'updatedAt'] }
}

/** Always later than before, even within one millisecond or after the clock stepped back. */
function nextUpdatedAt(before: string, nowMs: number): string {
  const beforeMs = Date.parse(before)
  return formatDatetime(Math.min(datetimeMaxMs, Math.max(nowMs, beforeMs + 1)))
}
