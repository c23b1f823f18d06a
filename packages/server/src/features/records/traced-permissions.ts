/** Permissions of a sampled request: each rule that is evaluated is added to its trace, with its result as text. */
import type { Permissions } from '../../access/check.ts'
import type { RequestTrace } from '../../base/tracing/request-trace.ts'
import type { Expr } from '../../query/expr.ts'
import { exprText } from '../../query/expr-text.ts'

export function tracedPermissions(permissions: Permissions, table: string, trace: RequestTrace): Permissions {
  const names = new Set<string>()
  const noting = (rule: string, evaluate: () => Expr) => (): Expr => {
    const expr = evaluate()
    if (!names.has(rule)) {
      names.add(rule)
      trace.rule(table, rule, exprText(expr))
    }
    return expr
  }
  return {
    read: noting('read', () => permissions.read()),
    // The same rule as `read`, but for service keys.
    locate: noting('read', () => permissions.locate()),
    readDependsOnClaims: () => permissions.readDependsOnClaims(),
    insert: noting('insert', () => permissions.insert()),
    updateBefore: noting('update.before', () => permissions.updateBefore()),
    updateAfter: noting('update.after', () => permissions.updateAfter()),
    delete: noting('delete', () => permissions.delete()),
  }
}
