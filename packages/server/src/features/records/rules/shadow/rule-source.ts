/** The text of a rule of the configuration, as a shadow run takes it. */
import type { Rule, TableAccess } from '../../../../access/definition.ts'
import { notFound } from '../../../../errors.ts'
import { shadowSourceCharsMax } from '../../../../limits/functions.ts'
import type { Namespaces } from '../../resolve-table.ts'

export interface RuleAddress {
  readonly namespace: string
  readonly table: string
  readonly operation: 'read' | 'create' | 'update' | 'update.after' | 'delete'
}

/** The rule, and its name in the section `access` of the table. */
function ruleOf(
  { read, insert, update, delete: remove }: TableAccess,
  operation: RuleAddress['operation'],
): readonly [name: string, rule: Rule] {
  if (operation === 'create') return ['insert', insert]
  const isOne = update.before === update.after
  if (operation === 'update') return [isOne ? 'update' : 'update.before', update.before]
  if (operation === 'update.after') return [isOne ? 'update' : 'update.after', update.after]
  return operation === 'delete' ? ['delete', remove] : ['read', read]
}

/** A method of an object, such as `read(auth) { … }`, is no expression without `function`. */
const asExpression = (text: string): string =>
  /^(?:async\s+)?[\w$]+\s*\([^)]*\)\s*\{/.test(text) && !/^(?:async\s+)?function\b/.test(text)
    ? `function ${text}`
    : text

export interface RuleSource {
  /** Empty where it is longer than a shadow run takes. */
  readonly rule: string
  /** Where the configuration has it, such as `databases.shared.tables.posts.access.read`. */
  readonly path: string
}

/** Throws 404 for an undeclared table. */
export function ruleSource(namespaces: Namespaces, { namespace, table, operation }: RuleAddress): RuleSource {
  const definition = namespaces.get(namespace)?.tables.get(table)
  if (!definition || definition.isPlatform) throw notFound('Table')
  const [name, rule] = ruleOf(definition.access, operation)
  const text = asExpression(String(rule))
  return {
    rule: text.length > shadowSourceCharsMax ? '' : text,
    path: `databases.${namespace}.tables.${table}.access.${name}`,
  }
}
