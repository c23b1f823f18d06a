/**
 * Dry-runs every rule with sample callers before a configuration is served, so that its author finds a broken rule and
 * not the first user it denies. A filter that can never be evaluated (an unknown field or table, mismatched types) is
 * an error; a rule that throws for a caller denies that caller, which may be intended, and is a warning.
 */
import type { Auth } from '../access/caller.ts'
import { instancesTable, roomsTable } from '../access/check.ts'
import type { BucketDefinition, NamespaceDefinition, TableAccess } from '../access/definition.ts'
import { findFilterErrors } from '../access/rule.ts'
import { tablesOf } from '../access/rule-evaluator.ts'
import type { Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import { type ConfigIssue, formatIssue, type Path } from './issues.ts'
import type { RoomNamespace } from './sections/rooms/rooms.ts'

export interface Rehearsed {
  readonly mistakes: readonly ConfigIssue[]
  /** As sentences. */
  readonly warnings: readonly string[]
}

export interface RehearsedConfig {
  readonly namespaces: ReadonlyMap<string, NamespaceDefinition>
  readonly buckets: ReadonlyMap<string, BucketDefinition>
  readonly rooms: ReadonlyMap<string, RoomNamespace>
}

/** Empty claims, without a prototype, as real ones. */
const noClaims: Auth['custom'] = Object.freeze(Object.create(null))

const userOf = (role: string): Auth =>
  Object.freeze({
    id: 'sample-user',
    email: 'sample@example.com',
    emailVerified: true,
    displayName: 'Sample',
    role,
    isAnonymous: false,
    custom: noClaims,
  })

/** Sample callers, with their names in warnings. */
const callers: readonly (readonly [name: string, auth: Auth | null])[] = [
  ['a caller without credentials', null],
  ['a user without custom claims', userOf('user')],
  ['an administrator without custom claims', userOf('admin')],
]

/** The id of sample instances and rooms. */
const sampleId = 'sample'

interface RehearsedRule {
  readonly path: Path
  readonly rule: unknown
  /** The table of its filters. */
  readonly table: Table
  readonly findTable: FindTable
  /** Arguments after the caller. */
  readonly args?: readonly unknown[]
  /** Whether it may return a promise. */
  readonly mayWait?: true
  /** Whether it depends on a client's message, which has no sample: then only its filters are checked. */
  readonly isOfMessage?: true
}

function* tableRules(access: TableAccess, { path, ...common }: Omit<RehearsedRule, 'rule'>): Generator<RehearsedRule> {
  const { before, after } = access.update
  yield { ...common, path: [...path, 'read'], rule: access.read }
  yield { ...common, path: [...path, 'insert'], rule: access.insert }
  yield { ...common, path: before === after ? [...path, 'update'] : [...path, 'update', 'before'], rule: before }
  if (before !== after) yield { ...common, path: [...path, 'update', 'after'], rule: after }
  yield { ...common, path: [...path, 'delete'], rule: access.delete }
}

function* rulesOf({ namespaces, buckets, rooms }: RehearsedConfig): Generator<RehearsedRule> {
  const shared = tablesOf(namespaces, null)
  for (const [name, { access, tables }] of namespaces) {
    const path = ['databases', name]
    if (access) {
      const over = { table: instancesTable, findTable: tablesOf(namespaces, name), args: [sampleId] }
      yield { ...over, path: [...path, 'access'], rule: access, mayWait: true }
    }
    // Rules of a table may only query tables of the same database.
    const findTable: FindTable = (other, within) => {
      const found = tables.get(other)
      if (!found) throw new Error(`There is no table "${other}" in ${within ? 'this namespace' : `"${name}"`}`)
      return found.table
    }
    for (const [tableName, { table, access: rules, isPlatform }] of tables) {
      const at = isPlatform ? ['auth', 'publicUsers'] : [...path, 'tables', tableName, 'access']
      if (isPlatform) yield { path: at, rule: rules.read, table, findTable }
      else yield* tableRules(rules, { path: at, table, findTable })
    }
  }
  for (const [name, { objects }] of buckets) {
    const { read, insert: write, delete: remove } = objects.access
    for (const [action, rule] of Object.entries({ read, write, delete: remove }))
      yield { path: ['storage', 'buckets', name, 'access', action], rule, table: objects.table, findTable: shared }
  }
  for (const [name, { access }] of rooms) {
    const over = { table: roomsTable, findTable: shared, mayWait: true } as const
    const path = ['rooms', name, 'access']
    yield { ...over, path: [...path, 'join'], rule: access.join, args: [sampleId] }
    yield { ...over, path: [...path, 'metadata'], rule: access.metadata, args: [sampleId] }
    const ofMessage = { ...over, args: [sampleId, sampleId, {}], isOfMessage: true } as const
    yield { ...ofMessage, path: [...path, 'action'], rule: access.action }
    yield { ...ofMessage, path: [...path, 'signal'], rule: access.signal }
  }
}

const isPromise = (given: unknown): given is Promise<unknown> => given instanceof Promise

/** The result of a rule, or the exception. */
function attempt(
  rule: (...args: unknown[]) => unknown,
  args: readonly unknown[],
): { given?: unknown; thrown?: unknown } {
  try {
    const given = rule(...args)
    // A later rejection is ignored here.
    if (isPromise(given)) given.catch(() => undefined)
    return { given }
  } catch (thrown) {
    return { thrown }
  }
}

function findRuleIssues({ table, findTable, mayWait }: RehearsedRule, given: unknown): readonly string[] {
  if (isPromise(given)) return mayWait ? [] : ['must not return a promise']
  if (!given || given === true) return []
  return findFilterErrors(given, table, findTable)
}

export function rehearseRules(config: RehearsedConfig): Rehearsed {
  const mistakes = new Map<string, ConfigIssue>()
  const warnings: string[] = []
  for (const rehearsed of rulesOf(config)) {
    const { rule, path, args = [], isOfMessage } = rehearsed
    if (typeof rule !== 'function') continue
    for (const [caller, auth] of callers) {
      // Joining a room requires an account.
      if (auth === null && path[0] === 'rooms' && path.at(-1) !== 'metadata') continue
      const { given, thrown } = attempt(rule as (...args: unknown[]) => unknown, [auth, ...args])
      if (thrown !== undefined && !isOfMessage) {
        const message = `fails for ${caller}, which denies access: ${thrown instanceof Error ? thrown.message : thrown}`
        warnings.push(formatIssue({ path, message }))
      }
      for (const message of findRuleIssues(rehearsed, given)) {
        const mistake = { path, message }
        mistakes.set(formatIssue(mistake), mistake)
      }
    }
  }
  return { mistakes: [...mistakes.values()], warnings }
}
