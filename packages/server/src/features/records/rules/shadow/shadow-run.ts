/**
 * A shadow run (rules RULES-SHADOW-*): which of the last records an edited rule would give to sample callers, and which
 * it would take from them. For development mode only, since it runs code.
 */

import { type Auth, callerKey, type ServiceCaller } from '../../../../access/caller.ts'
import { type Permissions, permissionsOf } from '../../../../access/check.ts'
import { evaluateRule } from '../../../../access/rule.ts'
import { permitsScope } from '../../../../access/service-keys.ts'
import { z } from '../../../../base/schemas/z.ts'
import { sql } from '../../../../engines/sql/sql-text.ts'
import { accessDenied, notFound } from '../../../../errors.ts'
import { aggregateTimeoutMs } from '../../../../limits/api.ts'
import {
  shadowCallersMax,
  shadowExplainedMax,
  shadowIdsMax,
  shadowRowsMax,
  shadowSourceCharsMax,
} from '../../../../limits/functions.ts'
import type { Expr } from '../../../../query/expr.ts'
import { exprText } from '../../../../query/expr-text.ts'
import type { Row } from '../../../../query/matches.ts'
import { decisiveClauses } from '../../../../query/tracing/decisive-clauses.ts'
import { type Clause, type ExistsExpr, trace } from '../../../../query/tracing/trace.ts'
import { scanRows } from '../../reads/scan.ts'
import { readScopeOf, type TableCall } from '../../resolve-table.ts'
import { type ExplainAccessDeps, findCaller } from '../explain-access.ts'
import { findTableIn, type MatrixDeps } from '../matrix/matrix.ts'
import { callerSchema } from '../question.ts'
import { findStored } from '../rehearsal.ts'
import { decodeFilter } from './decode-filter.ts'

export const shadowOperations = ['read', 'create', 'update', 'update.after', 'delete'] as const

/** The rules that a shadow run compares. */
export const shadowOperation = z.enum(shadowOperations).meta({
  description:
    'For `update` the rule for the record before, for `update.after` the one for its result, with each record as the result',
})

export const shadowSchema = z.strictObject({
  namespace: z.string(),
  instanceId: z.string().optional(),
  table: z.string(),
  operation: shadowOperation,
  rule: z.string().min(1).max(shadowSourceCharsMax).meta({
    description:
      'An expression in TypeScript: `true`, `false` or a function of `auth`. It may use and, or, not, exists, field and where.',
  }),
  callers: z.array(callerSchema).min(1).max(shadowCallersMax),
})

type ShadowQuestion = z.infer<typeof shadowSchema>

/** A position in the text of a rule, from 1. */
interface TextPosition {
  readonly line: number
  readonly column: number
}

/** Runs the text of a rule for callers, in a process of its own; throws 400 where it does not compile. */
export type RunRuleSource = (
  source: string,
  auths: readonly (Auth | null)[],
) => Promise<readonly ({ readonly result: unknown } | { readonly error: string; readonly at: TextPosition | null })[]>

/** Why a record is gained or lost: the clauses of both rules that decide. */
interface ChangedRow {
  readonly id: string
  readonly before: readonly Clause[]
  readonly after: readonly Clause[]
}

interface Changed {
  readonly count: number
  /** The first of them, the latest first. */
  readonly ids: readonly string[]
  /** The first of `ids`, explained; one that was deleted meanwhile is missing. */
  readonly rows: readonly ChangedRow[]
}

interface ShadowOfCaller {
  readonly auth: Auth | null
  readonly gained: Changed
  readonly lost: Changed
  /** Both rules for this caller, as text. */
  readonly before: string
  readonly after: string
  /** Why the edited rule failed, and so denies. */
  readonly error: string | null
  /** Where it failed, if that is known. */
  readonly errorAt: TextPosition | null
}

export interface ShadowRun {
  /** Records that were compared. */
  readonly rows: number
  readonly callers: readonly ShadowOfCaller[]
}

const ruleOf = (permissions: Permissions, operation: ShadowQuestion['operation']): Expr => {
  if (operation === 'create') return permissions.insert()
  if (operation === 'update') return permissions.updateBefore()
  if (operation === 'update.after') return permissions.updateAfter()
  return operation === 'delete' ? permissions.delete() : permissions.read()
}

interface ComparedRow {
  readonly id: string
  readonly was: unknown
  readonly is: unknown
}

type Explain = (id: string) => Promise<ChangedRow | null>

async function changedOf(rows: readonly ComparedRow[], explain: Explain): Promise<Changed> {
  const ids = rows.slice(0, shadowIdsMax).map(({ id }) => id)
  const explained: ChangedRow[] = []
  for (const id of ids.slice(0, shadowExplainedMax)) {
    const row = await explain(id)
    if (row) explained.push(row)
  }
  return { count: rows.length, ids, rows: explained }
}

/** Explains records for a caller whose key reads the whole table, so that nothing is masked. */
function createExplain(call: TableCall, before: Expr, after: Expr): Explain {
  const { backEnd, table, database, caller } = call
  const never = (): boolean => false
  const isTrue = async (exists: ExistsExpr): Promise<boolean> => {
    const query = sql`SELECT 1 AS yes WHERE ${backEnd.condition(exists, table)}`
    return (await database.all(query, undefined, callerKey(caller))).length > 0
  }
  const decide = async (expr: Expr, row: Row, path: string): Promise<readonly Clause[]> =>
    decisiveClauses((await trace(expr, { path, row, isTrue, isMasked: never, isSecret: never })).clauses)
  return async (id) => {
    const stored = await findStored(call, id)
    if (!stored) return null
    const { row } = stored.row
    return { id, before: await decide(before, row, 'before'), after: await decide(after, row, 'after') }
  }
}

/**
 * The last records by id, which grows with time unless clients choose it. Outside of the event loop, since an edited
 * rule may search another table for each record. Throws 400 past the time limit.
 */
async function compareRows(call: TableCall, before: Expr, after: Expr) {
  const { rows, backEnd, table } = call
  const flag = (expr: Expr) => sql`CASE WHEN ${backEnd.condition(expr, table)} THEN 1 ELSE 0 END`
  const statement = sql`SELECT ${rows.name}."id" AS "id", ${flag(before)} AS "was", ${flag(after)} AS "is" FROM ${rows.from}
      ORDER BY ${rows.name}."id" DESC LIMIT ${shadowRowsMax}`
  const found = await scanRows<ComparedRow>(call, statement, aggregateTimeoutMs)
  const [was, is] = [(row: ComparedRow) => Number(row.was) === 1, (row: ComparedRow) => Number(row.is) === 1]
  const explain = createExplain(call, before, after)
  return {
    rows: found.length,
    gained: await changedOf(
      found.filter((row) => !was(row) && is(row)),
      explain,
    ),
    lost: await changedOf(
      found.filter((row) => was(row) && !is(row)),
      explain,
    ),
  }
}

/**
 * Throws 403 for a key that may not read the table, 404 for an undeclared one, 400 for a rule that does not compile.
 */
export async function shadowRun(
  deps: ExplainAccessDeps & Pick<MatrixDeps, 'namespaces'> & { readonly runRuleSource: RunRuleSource },
  service: ServiceCaller,
  question: ShadowQuestion,
): Promise<ShadowRun> {
  const { namespace, instanceId = null, table: tableName, operation, rule } = question
  if (!permitsScope(service.scopes, readScopeOf(tableName)))
    throw accessDenied(`A shadow run needs the scope ${readScopeOf(tableName)}`)
  const path = { namespace, instanceId, tableName }
  const known = await deps.tables.resolve(path, service)
  const callers = await Promise.all(question.callers.map((caller) => findCaller(deps.callers, caller)))
  if (callers.includes(null)) throw accessDenied('A caller is disabled')
  const found = deps.namespaces().get(namespace)
  const definition = found?.tables.get(tableName)
  if (!found || !definition) throw notFound('Table')
  const findTable = findTableIn(found)
  const results = await deps.runRuleSource(
    rule,
    callers.map((caller) => caller?.auth ?? null),
  )
  const shadows: ShadowOfCaller[] = []
  let rows = 0
  for (const [at, caller] of callers.entries()) {
    if (!caller) continue
    const given = results[at] ?? { error: 'The rule returned nothing', at: null }
    let error = 'error' in given ? given.error : null
    const report = ({ error: thrown }: { readonly error: unknown }): void => {
      error ??= thrown instanceof Error ? thrown.message : String(thrown)
    }
    const result = () => {
      if ('error' in given) throw new Error(given.error)
      return decodeFilter(given.result) as never
    }
    const permissions = permissionsOf(caller, definition, readScopeOf(tableName), findTable, () => {})
    const before = ruleOf(permissions, operation)
    const after = evaluateRule(result, caller.auth, known.table, findTable, report)
    const compared = await compareRows(known, before, after)
    rows = compared.rows
    const { gained, lost } = compared
    const errorAt = 'error' in given ? given.at : null
    shadows.push({ auth: caller.auth, gained, lost, before: exprText(before), after: exprText(after), error, errorAt })
  }
  return { rows, callers: shadows }
}
