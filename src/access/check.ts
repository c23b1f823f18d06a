/**
 * The one check every way to a record passes through: what a caller may do with a table, as trees. Handlers restrict
 * lists with them and judge rows with them; nobody evaluates a rule elsewhere.
 */
import { type ApiError, accessDenied, authenticationRequired } from '../errors.ts'
import { always, type Expr, never } from '../query/expr.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Caller } from './caller.ts'
import type { NamespaceDefinition, Rule, TableDefinition } from './definition.ts'
import { evaluateRule, type ReportRuleError } from './rule.ts'
import { permitsScope } from './service-keys.ts'

/** What one caller may do with one table. Each tree is computed when first asked for. */
export interface Permissions {
  /** Rows whose fields the caller may see: by reads, in the answers of writes, through filters. */
  read(): Expr
  /** Rows that the caller may know to exist, and may name in a write: a key writes rows that it cannot read. */
  locate(): Expr
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
  return { read: reads, locate: yes, insert: writes, updateBefore: writes, updateAfter: writes, delete: writes }
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
    insert: once(access.insert),
    updateBefore: once(access.update.before),
    updateAfter: once(access.update.after),
    delete: once(access.delete),
  }
}

/** Whether the caller may address this instance of a dynamic namespace at all. A rule that fails denies. */
export function mayEnter(
  namespace: NamespaceDefinition,
  instanceId: string,
  caller: Caller,
  report: (error: unknown) => void,
): boolean {
  if (caller.kind === 'service') return true
  try {
    return namespace.access?.(caller.auth, instanceId) === true
  } catch (error) {
    report(error)
    return false
  }
}
