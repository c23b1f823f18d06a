/**
 * The one check every way to a record passes through: what a caller may do with a table, as trees. Handlers restrict
 * lists with them and judge rows with them; nobody evaluates a rule elsewhere.
 */
import { EngineError } from '../engines/sql/error.ts'
import type { DatabaseAddress } from '../engines/sql/sql.ts'
import { type ApiError, accessDenied, authenticationRequired } from '../errors.ts'
import { asyncRuleTimeoutMs } from '../limits/api.ts'
import { always, type Expr, never } from '../query/expr.ts'
import type { Row } from '../query/matches.ts'
import type { Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Caller } from './caller.ts'
import type { NamespaceDefinition, Rule, TableDefinition } from './definition.ts'
import { type Judge, thingTable } from './judge.ts'
import { evaluateRule, filterExpr, type ReportRuleError, RuleError, readsClaims } from './rule.ts'
import { permitsScope } from './service-keys.ts'

/** What one caller may do with one table. Each tree is computed when first asked for. */
export interface Permissions {
  /** Rows whose fields the caller may see: by reads, in the answers of writes, through filters. */
  read(): Expr
  /** Rows that the caller may know to exist, and may name in a write: a key writes rows that it cannot read. */
  locate(): Expr
  /** Whether `read` depends on more of the caller than its id: on role or claims, which may change. */
  readDependsOnClaims(): boolean
  insert(): Expr
  updateBefore(): Expr
  updateAfter(): Expr
  delete(): Expr
}

/** The refusal of a rule: 401 to a caller without credentials, 403 to one with. */
export const denied = (caller: Caller): ApiError =>
  caller.kind === 'anonymous' ? authenticationRequired() : accessDenied()

/** Passes a tree through unless it denies whatever the row: then throws before any row is looked for. */
export function required(expr: Expr, caller: Caller): Expr {
  if (expr.kind === 'const' && !expr.value) throw denied(caller)
  return expr
}

const yes = (): Expr => always
const no = (): Expr => never

/** What a service key may do, past every rule: with and without the scope to read, and with tables it cannot write. */
const keyPermissions = (mayRead: boolean, mayWrite: boolean): Permissions => {
  const [reads, writes] = [mayRead ? yes : no, mayWrite ? yes : no]
  return {
    read: reads,
    readDependsOnClaims: () => false,
    locate: yes,
    insert: writes,
    updateBefore: writes,
    updateAfter: writes,
    delete: writes,
  }
}

const ofKeys = {
  all: keyPermissions(true, true),
  readOnly: keyPermissions(true, false),
  writeOnly: keyPermissions(false, true),
  none: keyPermissions(false, false),
}

/** `readScope` is what a service key needs to see the table's rows, such as `db:table:posts:read`. */
export function permissionsOf(
  caller: Caller,
  { table, access, isPlatform }: TableDefinition,
  readScope: string,
  findTable: FindTable,
  report: ReportRuleError,
): Permissions {
  if (caller.kind === 'service') {
    const mayRead = permitsScope(caller.scopes, readScope)
    if (isPlatform) return mayRead ? ofKeys.readOnly : ofKeys.none
    return mayRead ? ofKeys.all : ofKeys.writeOnly
  }
  const evaluate = (rule: Rule): Expr => evaluateRule(rule, caller.auth, table, findTable, report)
  const once = (rule: Rule): (() => Expr) => {
    let expr: Expr | null = null
    return () => (expr ??= evaluate(rule))
  }
  const read = once(access.read)
  return {
    read,
    locate: read,
    readDependsOnClaims: () => typeof access.read === 'function' && readsClaims(caller.auth, access.read),
    insert: once(access.insert),
    updateBefore: once(access.update.before),
    updateAfter: once(access.update.after),
    delete: once(access.delete),
  }
}

/** A rule over one thing, and what it may ask. */
export interface Decision {
  /** Calls the rule. */
  readonly rule: () => unknown
  /** What the filters of the rule are over; see `thingTable`. */
  readonly table: Table
  /** The thing as a row of it. */
  readonly thing: Row
  /** An instance whose tables the rule may ask. */
  readonly instance?: DatabaseAddress
  /** Told once of a rule that failed and so denied. */
  readonly report: (error: unknown) => void
}

/** Ends with the rule's promise, or after a bound: a request must not wait for a rule that never answers. */
async function answerOf(promise: Promise<unknown>): Promise<unknown> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new RuleError(`The rule did not answer within ${asyncRuleTimeoutMs} ms`)),
    asyncRuleTimeoutMs,
  )
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Whether a rule over an instance, a room or the like allows. A rule that fails (it throws, rejects, gives what is
 * neither a boolean nor a filter) denies and is reported. A promise only where something has to be asked; it rejects
 * with `EngineError` where a database is away.
 */
export function decide(judge: Judge, decision: Decision): boolean | Promise<boolean> {
  const { rule, table, thing, instance, report } = decision
  const fail = (error: unknown): false => {
    if (error instanceof EngineError) throw error
    report(error)
    return false
  }
  const asBoolean = (given: unknown): boolean => {
    if (given === true || !given) return given === true
    throw new RuleError('A rule must give true, false, a filter, or a promise of true or false')
  }
  try {
    const given = rule()
    if (typeof given !== 'object' || given === null) return asBoolean(given)
    if (given instanceof Promise) return answerOf(given).then(asBoolean).catch(fail)
    const expr = filterExpr(given, table, judge.tablesOf(instance?.namespace ?? null))
    const holds = judge.holds(expr, thing, instance ?? null)
    return holds instanceof Promise ? holds.catch(fail) : holds
  } catch (error) {
    return fail(error)
  }
}

/** Instances and rooms, as their rules see them. */
export const instancesTable = thingTable('instances')
export const roomsTable = thingTable('rooms')

/** Whether the caller may address this instance of a dynamic namespace at all. A rule that fails denies. */
export function mayEnter(
  judge: Judge,
  namespace: NamespaceDefinition,
  instanceId: string,
  caller: Caller,
  report: (error: unknown) => void,
): boolean | Promise<boolean> {
  if (caller.kind === 'service') return true
  const { access } = namespace
  if (!access) return false
  return decide(judge, {
    rule: () => access(caller.auth, instanceId),
    table: instancesTable,
    thing: { id: instanceId },
    instance: { namespace: namespace.name, instanceId },
    report,
  })
}
