/**
 * The access check that every path to a record passes through: a caller's permissions on a table as expression trees.
 * Handlers restrict lists with these trees and evaluate them on rows; no rule is evaluated anywhere else.
 */
import { EngineError } from '../engines/sql/error.ts'
import type { DatabaseAddress } from '../engines/sql/sql.ts'
import { type ApiError, accessDenied, authenticationRequired, type FieldErrors } from '../errors.ts'
import { asyncRuleTimeoutMs } from '../limits/api.ts'
import { always, type Expr, never } from '../query/expr.ts'
import type { Row } from '../query/matches.ts'
import type { Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Auth, Caller } from './caller.ts'
import type { NamespaceDefinition, Rule, TableDefinition } from './definition.ts'
import { evaluateRule, filterExpr, type ReportRuleError, RuleError, readsClaims } from './rule.ts'
import { type RuleEvaluator, subjectTable } from './rule-evaluator.ts'
import { permitsScope } from './service-keys.ts'

/** The permissions of one caller on one table. Each tree is computed on first use. */
export interface Permissions {
  /** Rows whose fields the caller may see in reads, in responses to writes and through filters. */
  read(): Expr
  /** Rows that the caller may know to exist and may name in a write. A service key can write rows it cannot read. */
  locate(): Expr
  /** Whether `read` depends on properties of the caller other than its id, such as role or claims, which can change. */
  readDependsOnClaims(): boolean
  insert(): Expr
  updateBefore(): Expr
  updateAfter(): Expr
  delete(): Expr
}

/**
 * The error for a denied access: 401 for a caller without credentials, 403 for one with. `at` is the path of the denied
 * operation in a batch.
 */
export function denied(caller: Caller, at = ''): ApiError {
  const data: FieldErrors | undefined = at === '' ? undefined : { [at]: { code: 'unknown', message: 'is not allowed' } }
  return caller.kind === 'anonymous' ? authenticationRequired(data) : accessDenied(undefined, data)
}

/** Returns the tree, unless it denies every row: then throws 401 or 403 before any row is read. */
export function required(expr: Expr, caller: Caller): Expr {
  if (expr.kind === 'const' && !expr.value) throw denied(caller)
  return expr
}

const yes = (): Expr => always
const no = (): Expr => never

/**
 * Permissions of a service key, which bypasses all rules: with or without the scope to read, and on read-only tables.
 */
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

const servicePermissions = {
  all: keyPermissions(true, true),
  readOnly: keyPermissions(true, false),
  writeOnly: keyPermissions(false, true),
  none: keyPermissions(false, false),
}

/** `readScope` is the scope that lets a service key read the table's rows, such as `db:table:posts:read`. */
export function permissionsOf(
  caller: Caller,
  { table, access, isPlatform }: TableDefinition,
  readScope: string,
  findTable: FindTable,
  report: ReportRuleError,
): Permissions {
  if (caller.kind === 'service') {
    const mayRead = permitsScope(caller.scopes, readScope)
    if (isPlatform) return mayRead ? servicePermissions.readOnly : servicePermissions.none
    return mayRead ? servicePermissions.all : servicePermissions.writeOnly
  }
  return new RulePermissions(access, caller.auth, table, findTable, report)
}

/** A class because one is created per request: closures would cost more than the rules. */
class RulePermissions implements Permissions {
  readonly #access: TableDefinition['access']
  readonly #auth: Auth | null
  readonly #table: Table
  readonly #findTable: FindTable
  readonly #report: ReportRuleError
  #read: Expr | null = null
  #insert: Expr | null = null
  #updateBefore: Expr | null = null
  #updateAfter: Expr | null = null
  #delete: Expr | null = null

  constructor(
    access: TableDefinition['access'],
    auth: Auth | null,
    table: Table,
    findTable: FindTable,
    report: ReportRuleError,
  ) {
    this.#access = access
    this.#auth = auth
    this.#table = table
    this.#findTable = findTable
    this.#report = report
  }

  read(): Expr {
    this.#read ??= this.#evaluate(this.#access.read)
    return this.#read
  }

  locate(): Expr {
    return this.read()
  }

  readDependsOnClaims(): boolean {
    const { read } = this.#access
    return typeof read === 'function' && readsClaims(this.#auth, read)
  }

  insert(): Expr {
    this.#insert ??= this.#evaluate(this.#access.insert)
    return this.#insert
  }

  updateBefore(): Expr {
    this.#updateBefore ??= this.#evaluate(this.#access.update.before)
    return this.#updateBefore
  }

  /** Most tables have one rule for both. */
  updateAfter(): Expr {
    const { before, after } = this.#access.update
    this.#updateAfter ??= before === after ? this.updateBefore() : this.#evaluate(after)
    return this.#updateAfter
  }

  delete(): Expr {
    this.#delete ??= this.#evaluate(this.#access.delete)
    return this.#delete
  }

  #evaluate(rule: Rule): Expr {
    return evaluateRule(rule, this.#auth, this.#table, this.#findTable, this.#report)
  }
}

/** A rule to evaluate for one subject that is not a row of a table, such as an instance or a room. */
export interface Decision {
  /** Calls the rule. */
  readonly rule: () => unknown
  /** The table definition that the rule's filters refer to; see `subjectTable`. */
  readonly table: Table
  /** The subject as a row of `table`. */
  readonly subject: Row
  /** An instance whose tables the rule may query. */
  readonly instance?: DatabaseAddress
  /** Called once when the rule failed and access was denied for that reason. */
  readonly report: (error: unknown) => void
  /** Called with the filter that the rule returned, if it is one, before it is evaluated. */
  readonly onFilter?: ((expr: Expr) => void) | undefined
}

/** Awaits the rule's promise with a timeout, so that a rule that never resolves cannot block a request. */
async function withTimeout(promise: Promise<unknown>): Promise<unknown> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => timeout.reject(new RuleError(`The rule's promise did not resolve within ${asyncRuleTimeoutMs} ms`)),
    asyncRuleTimeoutMs,
  )
  try {
    return await Promise.race([promise, timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Evaluates a rule over an instance, a room or another subject. A rule that fails (throws, rejects, or returns neither
 * a boolean nor a filter) denies and is reported. Returns a promise only if the rule is asynchronous or a database has
 * to be queried; it rejects with `EngineError` when a database is unavailable.
 */
export function decide(ruleEvaluator: RuleEvaluator, decision: Decision): boolean | Promise<boolean> {
  const { rule, table, subject, instance, report, onFilter } = decision
  const fail = (error: unknown): false => {
    if (error instanceof EngineError) throw error
    report(error)
    return false
  }
  const asBoolean = (result: unknown): boolean => {
    if (result === true || !result) return result === true
    throw new RuleError('A rule must return true, false, a filter, or a promise of true or false')
  }
  try {
    const result = rule()
    if (typeof result !== 'object' || result === null) return asBoolean(result)
    if (result instanceof Promise) return withTimeout(result).then(asBoolean).catch(fail)
    const expr = filterExpr(result, table, ruleEvaluator.tablesOf(instance?.namespace ?? null))
    onFilter?.(expr)
    const isAllowed = ruleEvaluator.isTrue(expr, subject, instance ?? null)
    return isAllowed instanceof Promise ? isAllowed.catch(fail) : isAllowed
  } catch (error) {
    return fail(error)
  }
}

/** Instances and rooms as their rules refer to them. */
export const instancesTable = subjectTable('instances')
export const roomsTable = subjectTable('rooms')

/** What a caller's rules do, for those who explain them. */
export interface AccessObserver {
  /** A rule of a namespace or a table failed, and denies for that reason. */
  readonly failed: (error: unknown) => void
  /** The rule of a dynamic namespace returned a filter over its instances. */
  readonly entry?: (expr: Expr) => void
}

/** Whether the caller may address this instance of a dynamic namespace. A rule that fails denies. */
export function mayEnter(
  ruleEvaluator: RuleEvaluator,
  namespace: NamespaceDefinition,
  instanceId: string,
  caller: Caller,
  { failed, entry }: AccessObserver,
): boolean | Promise<boolean> {
  if (caller.kind === 'service') return true
  const { access } = namespace
  if (!access) return false
  return decide(ruleEvaluator, {
    rule: () => access(caller.auth, instanceId),
    table: instancesTable,
    subject: { id: instanceId },
    instance: { namespace: namespace.name, instanceId },
    report: failed,
    onFilter: entry,
  })
}
