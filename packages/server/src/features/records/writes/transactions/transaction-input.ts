/**
 * The body of a transaction: its schema, and its operations parsed for the tables that they name, without the database.
 */

import type { Caller } from '../../../../access/caller.ts'
import { required } from '../../../../access/check.ts'
import { permitsScope, scopeMissing } from '../../../../access/service-keys.ts'
import { createSlices } from '../../../../base/concurrency/slices.ts'
import { z } from '../../../../base/schemas/z.ts'
import { ApiError, conflict, type FieldError, invalid, withData } from '../../../../errors.ts'
import { batchOperationsMax, fieldErrorsMax, transactionListsMax } from '../../../../limits/api.ts'
import { type ListCheck, listCheckBody, parseListCheck } from '../../reads/list-check.ts'
import { readScopeOf, type TableCall } from '../../resolve-table.ts'
import { recordSchema, writeScope } from '../../table-endpoint.ts'
import { type Generated, type Patch, parseInsert, parsePatch, sentBy } from '../input.ts'
import type { NewRecord } from '../insert.ts'
import type { SentFields } from '../replay.ts'
import { parseConflictTarget, parseUpsert, requireUpsert, type Upsert } from '../upsert.ts'

const kinds = ['insert', 'upsert', 'update', 'delete', 'check'] as const

const ifMatch = z
  .union([z.string(), z.int()])
  .meta({ description: 'A version of the record: its `ETag`, or the number; 409 if it has another one' })

type CheckMember = 'id' | 'ifMatch' | 'exists' | 'list' | 'digest'
const checkForms: readonly string[] = ['id,ifMatch', 'id,exists', 'list,digest']

function isOneCheck(check: Readonly<Partial<Record<CheckMember, unknown>>>): boolean {
  const members: readonly CheckMember[] = ['id', 'ifMatch', 'exists', 'list', 'digest']
  return checkForms.includes(members.filter((member) => check[member] !== undefined).join())
}

const operationBody = z
  .strictObject({
    table: z.string(),
    insert: recordSchema.optional(),
    upsert: recordSchema.optional(),
    conflictTarget: z.string().optional().meta({ description: 'Of an upsert: id or a unique field; default id' }),
    update: z.strictObject({ id: z.string(), data: recordSchema, ifMatch: ifMatch.optional() }).optional(),
    delete: z.strictObject({ id: z.string(), ifMatch: ifMatch.optional() }).optional(),
    check: z
      .strictObject({
        id: z.string().optional(),
        ifMatch: ifMatch.optional(),
        exists: z.boolean().optional(),
        list: listCheckBody.optional(),
        digest: z.string().optional(),
      })
      .refine(isOneCheck, { message: 'must have id with either ifMatch or exists, or list with digest' })
      .optional()
      .meta({
        description:
          'A condition on a record that the caller may read, or on a list of such records; 409 if it does not hold',
      }),
  })
  .refine((one) => kinds.filter((kind) => one[kind] !== undefined).length === 1, {
    message: `must have exactly one of ${kinds.join(', ')}`,
  })
  .refine((one) => one.conflictTarget === undefined || one.upsert !== undefined, {
    message: 'applies to upserts only',
    path: ['conflictTarget'],
  })

/** Bounded here, so that the items of too long a list are not parsed. */
const operationsOf = (min: number) =>
  z
    .array(operationBody)
    .min(min)
    .max(batchOperationsMax)
    .refine((operations) => operations.filter(({ check }) => check?.list).length <= transactionListsMax, {
      message: `must have at most ${transactionListsMax} checks of lists`,
      params: { code: 'max' },
    })

export const transactionBody = z.strictObject({ operations: operationsOf(1) })

/** Of a function, which can also add jobs; the feature of functions checks these. */
export const functionTransactionBody = z
  .strictObject({ operations: operationsOf(0), jobs: z.array(z.unknown()).optional() })
  .refine(({ operations, jobs = [] }) => operations.length + jobs.length > 0, { message: 'must have operations' })

export type TransactionBody = z.infer<typeof functionTransactionBody>

type OperationBody = z.infer<typeof operationBody>

/** An operation on a table, and its path in errors. */
export type Operation = { readonly call: TableCall; readonly at: string } & (
  | { readonly kind: 'insert'; readonly record: NewRecord; readonly sent: SentFields }
  | { readonly kind: 'upsert'; readonly upsert: Upsert }
  | { readonly kind: 'update'; readonly id: string; readonly patch: Patch; readonly ifMatch: string | null }
  | { readonly kind: 'delete'; readonly id: string; readonly ifMatch: string | null }
  | { readonly kind: 'check'; readonly id: string; readonly expected: { ifMatch: string } | { exists: boolean } }
  | { readonly kind: 'checkList'; readonly list: ListCheck }
)

const pathOf = (index: number): string => `operations[${index}]`

/**
 * An error of one operation, which names it. A condition that does not hold is a conflict: 412 is for the conditions of
 * a request's header.
 */
function namedError(error: unknown, at: string): unknown {
  if (!(error instanceof ApiError)) return error
  const { status, message, data } = error
  if (status === 412) return conditionFailed(at, message)
  if (Object.keys(data ?? {}).length > 0) return error
  return withData(error, { [at]: { code: 'unknown', message } })
}

/** 409 for a condition that does not hold; the same for a record that is absent, hidden or changed. */
export const conditionFailed = (at: string, message: string): ApiError =>
  conflict(message, { [at]: { code: 'unknown', message: 'the condition does not hold' } })

/** Whether an error is that of a condition, and not of a duplicate, which names a field. */
export const isFailedCondition = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 409 && Object.keys(error.data ?? {}).some((path) => path.endsWith(']'))

/** Runs one operation; its errors name it. */
export async function named<T>(at: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw namedError(error, at)
  }
}

/** Throws 401 for a service key without the scope of an operation: to read for a check, to write for the others. */
export function requireScopes(caller: Caller, operations: readonly OperationBody[]): void {
  if (caller.kind !== 'service') return
  for (const { table, check } of operations)
    if (!permitsScope(caller.scopes, check ? readScopeOf(table) : writeScope({ table }))) throw scopeMissing(caller)
}

/**
 * The tables of the operations by name, for one caller. `resolve` gives the first table and decides whether the caller
 * may use the namespace. Throws 404 that names the operation.
 */
export async function resolveTables(
  operations: readonly OperationBody[],
  resolve: (table: string) => TableCall | Promise<TableCall>,
): Promise<ReadonlyMap<string, TableCall>> {
  const calls = new Map<string, TableCall>()
  let first: TableCall | null = null
  for (const [index, { table }] of operations.entries()) {
    if (calls.has(table)) continue
    const call: TableCall = await named(pathOf(index), () => first?.sibling(table) ?? resolve(table))
    first ??= call
    calls.set(table, call)
  }
  return calls
}

function parseOperation(call: TableCall, body: OperationBody, generated: Generated, at: string): Operation {
  const { permissions, caller, bodyView } = call
  const { insert, upsert, update, delete: removal, check } = body
  const conditionOf = (one: { ifMatch?: string | number | undefined }): string | null =>
    one.ifMatch === undefined ? null : String(one.ifMatch)
  if (insert) {
    required(permissions.insert(), caller)
    const record = { row: parseInsert(bodyView, insert, generated, `${at}.`), hasOwnId: Object.hasOwn(insert, 'id') }
    return { call, at, kind: 'insert', record, sent: Object.keys(insert) }
  }
  if (upsert) {
    requireUpsert(call)
    const target = parseConflictTarget(call, body.conflictTarget)
    return { call, at, kind: 'upsert', upsert: parseUpsert(call, upsert, generated, target, `${at}.`) }
  }
  if (update) {
    required(permissions.updateBefore(), caller)
    const patch = parsePatch(bodyView, update.data, `${at}.`)
    return { call, at, kind: 'update', id: update.id, patch, ifMatch: conditionOf(update) }
  }
  if (removal) {
    required(permissions.delete(), caller)
    return { call, at, kind: 'delete', id: removal.id, ifMatch: conditionOf(removal) }
  }
  if (check?.list) {
    const list = parseListCheck(call, check.list, check.digest ?? '', `${at}.check.list`)
    return { call, at, kind: 'checkList', list }
  }
  required(permissions.read(), caller)
  const { id = '', exists = true } = check ?? {}
  const condition = conditionOf(check ?? {})
  return { call, at, kind: 'check', id, expected: condition === null ? { exists } : { ifMatch: condition } }
}

/**
 * Parses the operations in slices of the event loop. Throws 400 that names the invalid fields of all of them, up to
 * `fieldErrorsMax`, and 401/403 if a rule denies every row.
 */
export async function parseOperations(
  operations: readonly OperationBody[],
  calls: ReadonlyMap<string, TableCall>,
  generated: Generated,
): Promise<Operation[]> {
  const parsed: Operation[] = []
  // Without a prototype, a field called `__proto__` is a name like any other.
  const errors: Record<string, FieldError> = Object.create(null)
  let found = 0
  const next = createSlices()
  for (const [index, one] of operations.entries()) {
    if (found >= fieldErrorsMax) break
    try {
      const at = pathOf(index)
      parsed.push(await named(at, () => parseOperation(calls.get(one.table) as TableCall, one, generated, at)))
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) throw error
      for (const [name, problem] of Object.entries(error.data ?? {}))
        if (found++ < fieldErrorsMax) errors[name] = problem
    }
    const pause = next()
    if (pause) await pause
  }
  if (found > 0) throw invalid(errors)
  return parsed
}

/** The fields that an operation sets in the record of its result; none where the result is not a record. */
export function sentOf(operation: Operation): SentFields {
  if (operation.kind === 'insert') return operation.sent
  if (operation.kind === 'upsert') return [...sentBy(operation.upsert.patch)]
  return operation.kind === 'update' ? [...sentBy(operation.patch)] : []
}
