/** Whether kinds of callers may enter the instances of a dynamic namespace. */
import { mayEnter } from '../../../../access/check.ts'
import type { NamespaceDefinition } from '../../../../access/definition.ts'
import type { RuleEvaluator } from '../../../../access/rule-evaluator.ts'
import { always, type Expr, isNever, never } from '../../../../query/expr.ts'
import { type CallerKind, type Cell, cellOf } from './cells.ts'
import { type EvaluateFor, outlineRule } from './rule-outline.ts'
import { claimMark, createSampleCaller, idMark, instanceMark } from './sample-caller.ts'

const allowed: Cell = { access: 'always', condition: null }
const refused: Cell = { access: 'never', condition: null }
const admitted: Cell = { access: 'depends', condition: 'the instance admits the caller' }

export interface Entry {
  readonly cells: Readonly<Record<CallerKind, Cell>>
  readonly reads: readonly string[]
  readonly failure: unknown
}

/** Evaluates the rule of a namespace for an instance as `mayEnter` does; its filter is returned and not evaluated. */
const entryRule =
  (namespace: NamespaceDefinition, tablesOf: RuleEvaluator['tablesOf'], instanceId: string): EvaluateFor =>
  (caller) => {
    let filter: Expr | null = null
    let failure: unknown
    const evaluator: RuleEvaluator = { tablesOf, isTrue: () => false }
    const result = mayEnter(evaluator, namespace, instanceId, caller, {
      failed: (error) => {
        failure = error
      },
      entry: (expr) => {
        filter = expr
      },
    })
    if (result instanceof Promise) return { expr: null }
    const expr = filter ?? (result ? always : never)
    return failure === undefined ? { expr } : { expr, failure }
  }

/** Claims of a user who belongs to an instance: its id, or a list with it. */
const memberships = [(instance: string): unknown => instance, (instance: string): unknown => [instance]]

/** Whether some user may enter an instance that has the user's id or a claim of the user as its id. */
function admitsMembers(ruleFor: (instanceId: string) => EvaluateFor): boolean {
  const { caller, claims } = createSampleCaller(() => undefined)
  const own = ruleFor(idMark)(caller)
  if (own.expr && !isNever(own.expr)) return true
  return [...claims].some((name) =>
    memberships.some((claimFor) => {
      const instance = claimMark(name)
      const member = createSampleCaller((claim) => (claim === name ? claimFor(instance) : undefined))
      const { expr } = ruleFor(instance)(member.caller)
      return expr !== null && !isNever(expr)
    }),
  )
}

/** Static namespaces have no rule of their own. */
export function entryOf(namespace: NamespaceDefinition, tablesOf: RuleEvaluator['tablesOf']): Entry {
  const open = { anonymous: allowed, user: allowed, owner: allowed, otherUser: allowed, otherTenant: allowed }
  if (!namespace.instance) return { cells: open, reads: [], failure: undefined }
  const ruleFor = (instanceId: string): EvaluateFor => entryRule(namespace, tablesOf, instanceId)
  const outline = outlineRule(ruleFor(instanceMark))
  const parts = [{ name: 'instance', outline }]
  const user = cellOf(parts, 'user')
  const isMember = user.access !== 'never' || admitsMembers(ruleFor)
  const member = isMember ? allowed : refused
  return {
    cells: {
      anonymous: cellOf(parts, 'anonymous'),
      user: user.access === 'never' && isMember ? admitted : user,
      // Both are users whom the instance admits.
      owner: member,
      otherUser: member,
      otherTenant: cellOf(parts, 'otherTenant'),
    },
    reads: outline.reads,
    failure: outline.failure,
  }
}
