/**
 * Explains what a caller may do (rules RULES-EXPLAIN-*): the verdict is that of the endpoint's own code in a rehearsal,
 * and the clauses are of the trees that this code evaluates.
 */
import {
  type Auth,
  type Caller,
  callerKey,
  type ServiceCaller,
  type UserCaller,
  userCallerOf,
} from '../../../access/caller.ts'
import type { RuleEvaluator } from '../../../access/rule-evaluator.ts'
import { permitsScope } from '../../../access/service-keys.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { ApiError, invalidField, invalidToken } from '../../../errors.ts'
import { clauseParametersMax, explainedStatementsMax, ruleClausesMax } from '../../../limits/api.ts'
import type { Expr } from '../../../query/expr.ts'
import { type Clause, type ExistsExpr, preview, trace } from '../../../query/tracing/trace.ts'
import { type Explanation, recordStatements } from '../reads/explain/explain.ts'
import { suggestIndex } from '../reads/explain/suggest-index.ts'
import { readScopeOf, type TableCall, type Tables } from '../resolve-table.ts'
import { indexesOf } from '../schema/migration-plan.ts'
import { authOfClaims, type CallerQuestion, type Question } from './question.ts'
import { type Failures, findSubject, type Step, type Subject, type SubjectDeps } from './subject.ts'

/** The callers that questions name. */
export interface CallersOfQuestions {
  /** A user as a new access token would make it; `disabled` for one that none admits, null for an unknown one. */
  find(userId: string): Promise<UserCaller | 'disabled' | null>
  /** Freezes custom claims as those of a token. */
  seal(claims: Record<string, unknown>): Auth['custom']
}

export interface ExplainAccessDeps extends SubjectDeps {
  readonly tables: Tables
  readonly ruleEvaluator: RuleEvaluator
  readonly callers: CallersOfQuestions
}

/** An index that would help a rule. */
interface SuggestedIndex {
  readonly table: string
  readonly fields: readonly string[]
}

export interface AccessExplanation {
  readonly allowed: boolean
  /** The status of the response, with 200 for each kind of success. */
  readonly verdict: 200 | 401 | 403 | 404
  /** The message of a refusal; of an allowed operation what else is in its way, such as a reference to the record. */
  readonly reason: string | null
  /** Of a list with a record: whether the list has it. */
  readonly listed: boolean | null
  /** The caller as rules see it. */
  readonly auth: Auth | null
  readonly clauses: readonly Clause[]
  /** Whether clauses are left out because there are too many. */
  readonly truncated: boolean
  /** The main statement; null if none was needed. */
  readonly sql: string | null
  readonly parameters: readonly unknown[]
  readonly plan: readonly string[]
  readonly suggestions: readonly SuggestedIndex[]
}

type Verdict = Pick<AccessExplanation, 'verdict' | 'reason'>

/** The verdict of a rehearsal. Throws what is not about access: 400 for an invalid row or filter, and failures. */
async function verdictOf(rehearse: () => Promise<unknown>): Promise<Verdict> {
  try {
    await rehearse()
    return { verdict: 200, reason: null }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { status, message: reason } = error
    if (status === 401 || status === 403 || status === 404) return { verdict: status, reason }
    // The rules have allowed it by then.
    if (status === 409) return { verdict: 200, reason }
    throw error
  }
}

/** The caller of a question; null for a disabled user. Throws 400 for an unknown one. */
export async function findCaller(callers: CallersOfQuestions, question: CallerQuestion): Promise<Caller | null> {
  if (question.kind === 'anonymous') return { kind: 'anonymous', auth: null, address: '' }
  if (question.kind === 'claims') return userCallerOf(authOfClaims(question.auth, callers.seal))
  const found = await callers.find(question.id)
  if (found === null) throw invalidField('caller.id', 'unknown', 'no such user')
  return found === 'disabled' ? null : found
}

const nothing = { listed: null, clauses: [], truncated: false, sql: null, parameters: [], plan: [], suggestions: [] }

const conclude = (
  auth: Auth | null,
  { verdict, reason }: Verdict,
  rest: Omit<AccessExplanation, 'allowed' | 'verdict' | 'reason' | 'auth'> = nothing,
): AccessExplanation => ({ allowed: verdict === 200, verdict, reason, auth, ...rest })

/** Throws 404 for an undeclared table, and 400 for a question about no user or with an invalid row. */
export async function explainAccess(
  deps: ExplainAccessDeps,
  service: ServiceCaller,
  question: Question,
): Promise<AccessExplanation> {
  const { namespace, instanceId = null, table: tableName } = question
  const path = { namespace, instanceId, tableName }
  const known = await deps.tables.resolve(path, service)
  const caller = await findCaller(deps.callers, question.caller)
  if (!caller) return conclude(null, { verdict: 401, reason: invalidToken().message })
  const entry: { expr: Expr | null } = { expr: null }
  const failures: Failures = {
    found: [],
    failed: (error) => void failures.found.push(error),
    entry: (expr) => {
      entry.expr = expr
    },
  }
  let opened: TableCall | null = null
  const entered = await verdictOf(async () => {
    opened = await deps.tables.resolve(path, caller, failures)
  })
  const isAllowed = entered.verdict === 200
  const ofEntry =
    instanceId === null
      ? []
      : await entryClauses(deps.ruleEvaluator, { namespace, instanceId }, { ...entry, isAllowed, failures })
  if (!opened) return conclude(caller.auth, entered, { ...nothing, clauses: ofEntry })
  const recorder = recordStatements(opened)
  const subject = await findSubject({ call: recorder.call, known, failures, question }, deps)
  const verdict = await verdictOf(subject.rehearse)
  const isReadable = permitsScope(service.scopes, readScopeOf(tableName))
  const traced = await traceSteps(opened, subject, isReadable)
  const statement = await explainStatement(recorder, question)
  const suggestions = [
    ...(statement.suggestion ? [{ table: tableName, fields: statement.suggestion.fields }] : []),
    ...traced.suggestions,
  ]
  const clauses = [...ofEntry, ...traced.clauses]
  return conclude(caller.auth, verdict, {
    listed: subject.isFound === undefined ? null : subject.isFound && traced.allTrue,
    clauses: clauses.slice(0, ruleClausesMax),
    truncated: clauses.length > ruleClausesMax,
    sql: statement.sql === '' ? null : statement.sql,
    // They contain values of records.
    parameters: isReadable ? statement.parameters.slice(0, clauseParametersMax).map(preview) : [],
    plan: isReadable ? statement.plan : [],
    suggestions,
  })
}

const explainStatement = (
  recorder: ReturnType<typeof recordStatements>,
  { filter, sort }: Question,
): Promise<Explanation> =>
  recorder.explain({
    ...(filter !== undefined && { filter: JSON.stringify(filter) }),
    ...(sort !== undefined && { sort }),
  })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const never = (): boolean => false

/** The rule of a dynamic namespace: its filter, or what it returned. */
async function entryClauses(
  ruleEvaluator: RuleEvaluator,
  address: { readonly namespace: string; readonly instanceId: string },
  entry: { readonly expr: Expr | null; readonly isAllowed: boolean; readonly failures: Failures },
): Promise<readonly Clause[]> {
  const row = { id: address.instanceId }
  if (entry.expr) {
    const isTrue = (exists: ExistsExpr) => ruleEvaluator.isTrue(exists, row, address)
    return (await trace(entry.expr, { path: 'instance', row, isTrue, isMasked: never, isSecret: never })).clauses
  }
  const [failure] = entry.failures.found
  const text = failure === undefined ? String(entry.isAllowed) : `The rule failed: ${messageOf(failure)}`
  return [{ text, path: 'instance', result: entry.isAllowed, values: {} }]
}

interface Traced {
  readonly clauses: readonly Clause[]
  readonly suggestions: readonly SuggestedIndex[]
  /** Whether all trees are true. */
  readonly allTrue: boolean
}

/** The clauses of each step. `isReadable`: whether the service key may see the values of records. */
async function traceSteps(call: TableCall, subject: Subject, isReadable: boolean): Promise<Traced> {
  const { backEnd, table, database, caller } = call
  const showsAll = isReadable || !subject.isStored
  const suggestions = new Map<string, SuggestedIndex>()
  let explained = 0
  const isTrue = async (exists: ExistsExpr): Promise<boolean> => {
    const query = sql`SELECT 1 AS yes WHERE ${backEnd.condition(exists, table)}`
    const [found] = await database.all(query, undefined, callerKey(caller))
    if (explained++ < explainedStatementsMax && (await database.explain(query)).scans.has('_e0')) {
      const suggestion = suggestionOf(call, exists)
      if (suggestion) suggestions.set(JSON.stringify(suggestion), suggestion)
    }
    return found !== undefined
  }
  const clauses: Clause[] = []
  let allTrue = true
  for (const { path, expr, row, failure } of subject.steps) {
    const traced = await trace(expr, {
      path,
      row,
      isTrue,
      isMasked: () => !showsAll,
      isSecret: (field) => !showsAll && table.hidden.has(field),
    })
    clauses.push(...failed(traced.clauses, failure))
    allTrue &&= traced.result === true
  }
  return { clauses, suggestions: [...suggestions.values()], allTrue }
}

/** The clause of a rule that failed says so. */
const failed = (clauses: readonly Clause[], failure: Step['failure']): readonly Clause[] =>
  failure === undefined
    ? clauses
    : clauses.map((clause) => ({ ...clause, text: `The rule failed: ${messageOf(failure)}` }))

/** An index for the rows that an `exists` looks for. */
function suggestionOf(call: TableCall, { table: name, where }: ExistsExpr): SuggestedIndex | null {
  const { table } = call.sibling(name)
  const fields = suggestIndex(
    table,
    { condition: where, sort: [] },
    indexesOf(table).map((index) => index.fields),
  )
  return fields && { table: name, fields }
}
