/**
 * What a question about rules comes down to for one caller: the trees that decide, the record that each is evaluated
 * for, and the operation to rehearse.
 */
import type { AccessObserver } from '../../../access/check.ts'
import { ApiError, invalidField } from '../../../errors.ts'
import type { Expr } from '../../../query/expr.ts'
import { parseFilterTexts } from '../../../query/filter.ts'
import type { Row } from '../../../query/matches.ts'
import type { TableCall } from '../resolve-table.ts'
import { applyPatch, type Generated, type Patch, parseInsert, parsePatch } from '../writes/input.ts'
import { parsePastedRow } from './pasted-row.ts'
import { type Operation, operationOf, type Question } from './question.ts'
import {
  findStored,
  type RehearsalDeps,
  rehearseDelete,
  rehearseGet,
  rehearseInsert,
  rehearseList,
  rehearseUpdate,
  type StandIn,
} from './rehearsal.ts'

/** A tree that decides, and the record that it is evaluated for. */
export interface Step {
  /** The rule: `read`, `insert`, `update.before`, `update.after` or `delete`; `filter` for that of a list. */
  readonly path: string
  readonly expr: Expr
  /** Null where there is none: of a list without a record, or of a record that does not exist. */
  readonly row: Row | null
  /** Why the rule failed, and so denies. */
  readonly failure?: unknown
}

export interface Subject {
  readonly operation: Operation
  readonly steps: readonly Step[]
  /** Whether the record is a stored one, whose values are the table's and not those of the question. */
  readonly isStored: boolean
  /** Of a list with a record: whether the record exists. */
  readonly isFound?: boolean
  /** Resolves or throws as the endpoint would. */
  readonly rehearse: () => Promise<void>
}

export interface SubjectDeps extends RehearsalDeps {
  readonly generate: () => Generated
}

/** Collects what rules throw. */
export interface Failures extends AccessObserver {
  readonly found: unknown[]
}

export interface SubjectInput {
  /** The table for the caller in question. */
  readonly call: TableCall
  /** The table for a service key, which sees every field. */
  readonly known: TableCall
  readonly failures: Failures
  readonly question: Question
}

/** Throws 400 for a row or a filter that the endpoint would not take. */
export async function findSubject(input: SubjectInput, deps: SubjectDeps): Promise<Subject> {
  const operation = operationOf(input.question)
  switch (operation) {
    case 'list':
      return listSubject(input, deps)
    case 'create':
      return createSubject(input, deps)
    case 'get':
      return getSubject(input, deps)
    case 'update':
      return updateSubject(input, deps)
    case 'delete':
      return deleteSubject(input, deps)
  }
}

/** A step with its rule; evaluated here for the first time, so that a failure is known to be of this rule. */
function step({ failures }: SubjectInput, path: string, evaluate: () => Expr, row: Row | null): Step {
  const count = failures.found.length
  const expr = evaluate()
  return failures.found.length > count ? { path, expr, row, failure: failures.found[count] } : { path, expr, row }
}

interface Record {
  readonly id: string
  readonly pasted: StandIn | null
  readonly found: StandIn | null
}

/** The record that the question names or gives. Throws 400 without one. */
async function getRecord({ question, known }: SubjectInput, from: TableCall, nowMs: number): Promise<Record> {
  const { id, row } = question
  if (id !== undefined) return { id, pasted: null, found: await findStored(from, id) }
  if (row === undefined) throw invalidField('id', 'required', 'is required, or else row')
  const pasted = parsePastedRow(known.bodyView, row, nowMs)
  return { id: pasted.id, pasted, found: pasted }
}

async function listSubject(input: SubjectInput, deps: SubjectDeps): Promise<Subject> {
  const { call, known, question } = input
  const { id, row, filter, sort } = question
  const query = {
    ...(filter !== undefined && { filter: JSON.stringify(filter) }),
    ...(sort !== undefined && { sort }),
  }
  const record = id === undefined && row === undefined ? null : await getRecord(input, known, deps.generate().nowMs)
  const shown = record?.found?.row.row ?? null
  const read = step(input, 'read', () => call.permissions.read(), shown)
  const steps = [read]
  if (filter !== undefined)
    steps.push({ path: 'filter', expr: parseFilterTexts(call.view, query).condition, row: shown })
  return {
    operation: 'list',
    steps,
    isStored: record !== null && record.pasted === null,
    ...(record && { isFound: record.found !== null }),
    rehearse: () => rehearseList(call, query, deps),
  }
}

async function getSubject(input: SubjectInput, deps: SubjectDeps): Promise<Subject> {
  const { call, known } = input
  const { nowMs } = deps.generate()
  // The statement of the rehearsal is the one to explain.
  const { id, pasted, found } = await getRecord(input, known, nowMs)
  return {
    operation: 'get',
    steps: [step(input, 'read', () => call.permissions.read(), found?.row.row ?? null)],
    isStored: pasted === null,
    rehearse: () => rehearseGet(call, { id, pasted }, { deps, nowMs }),
  }
}

async function createSubject(input: SubjectInput, { generate }: SubjectDeps): Promise<Subject> {
  const { call, question } = input
  const { row: body = {} } = question
  const generated = generate()
  const parse = attempt(() => parseInsert(call.bodyView, body, generated, 'row.'))
  const insert = step(input, 'insert', () => call.permissions.insert(), parse.value)
  return {
    operation: 'create',
    steps: [insert],
    isStored: false,
    rehearse: () => rehearseInsert(call, parse.get, generated.nowMs),
  }
}

async function updateSubject(input: SubjectInput, { generate }: SubjectDeps): Promise<Subject> {
  const { call, question } = input
  const { nowMs } = generate()
  const { id, pasted, found } = await getRecord(input, call, nowMs)
  const parse = attempt((): Patch => parsePatch(call.bodyView, pasted ? {} : (question.row ?? {}), 'row.'))
  const before = found?.row.row ?? null
  const { value: patch } = parse
  const after = before && patch ? attempt(() => applyPatch(call.table, before, patch, nowMs).after).value : null
  return {
    operation: 'update',
    steps: [
      step(input, 'read', () => call.permissions.locate(), before),
      step(input, 'update.before', () => call.permissions.updateBefore(), before),
      step(input, 'update.after', () => call.permissions.updateAfter(), after),
    ],
    isStored: pasted === null,
    rehearse: () => rehearseUpdate(call, { id, standIn: found, patch: parse.get }, nowMs),
  }
}

async function deleteSubject(input: SubjectInput, { generate }: SubjectDeps): Promise<Subject> {
  const { call } = input
  const { nowMs } = generate()
  const { id, pasted, found } = await getRecord(input, call, nowMs)
  const row = found?.row.row ?? null
  return {
    operation: 'delete',
    steps: [
      step(input, 'read', () => call.permissions.locate(), row),
      step(input, 'delete', () => call.permissions.delete(), row),
    ],
    isStored: pasted === null,
    rehearse: () => rehearseDelete(call, { id, standIn: found }, nowMs),
  }
}

interface Attempt<T> {
  /** Null where the parser refused. */
  readonly value: T | null
  /** Throws what the parser threw: only once the rules that come before it have allowed. */
  readonly get: () => T
}

function attempt<T>(parse: () => T): Attempt<T> {
  try {
    const value = parse()
    return { value, get: () => value }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return {
      value: null,
      get: () => {
        throw error
      },
    }
  }
}
