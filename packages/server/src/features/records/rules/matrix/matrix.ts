/**
 * The matrix of access: what kinds of callers may do with the records of each table, computed from the rules without
 * reading any record (rules RULES-MATRIX-*).
 */
import { permissionsOf } from '../../../../access/check.ts'
import type { BucketDefinition, NamespaceDefinition, TableDefinition } from '../../../../access/definition.ts'
import type { RuleEvaluator } from '../../../../access/rule-evaluator.ts'
import { createSlices } from '../../../../base/concurrency/slices.ts'
import type { Expr } from '../../../../query/expr.ts'
import type { FindTable } from '../../../../query/to-sql.ts'
import { type Namespaces, readScopeOf } from '../../resolve-table.ts'
import { bothCells, type CallerKind, type Cell, type CellPart, callerKinds, cellOf } from './cells.ts'
import { type Entry, entryOf } from './entry-cells.ts'
import { type EvaluateFor, outlineRule, type RuleOutline } from './rule-outline.ts'

export const matrixOperations = ['read', 'create', 'update', 'delete'] as const
export type MatrixOperation = (typeof matrixOperations)[number]

type Cells = Readonly<Record<CallerKind, Cell>>

export interface MatrixTable {
  readonly kind: 'table' | 'bucket'
  /** Null for a bucket. */
  readonly namespace: string | null
  /** Whether the namespace has one set of tables per instance. */
  readonly hasInstances: boolean
  readonly name: string
  readonly operations: Readonly<Record<MatrixOperation, Cells>>
  /** Properties of the caller beside its id that the rules read, such as `role` and `custom.team`. */
  readonly reads: readonly string[]
  /** Rules that failed for a sample caller, with their errors: they deny. */
  readonly failures: readonly string[]
}

export interface MatrixDeps {
  readonly namespaces: () => Namespaces
  readonly buckets: () => ReadonlyMap<string, BucketDefinition>
  readonly ruleEvaluator: Pick<RuleEvaluator, 'tablesOf'>
}

export type RuleName = 'read' | 'insert' | 'update.before' | 'update.after' | 'delete'

export type Outlines = Readonly<Record<RuleName, RuleOutline>>

/** The rules that an operation must satisfy; a record that is written must be visible to the caller before. */
export const rulesOf: Readonly<Record<MatrixOperation, readonly RuleName[]>> = {
  read: ['read'],
  create: ['insert'],
  update: ['read', 'update.before', 'update.after'],
  delete: ['read', 'delete'],
}

function outlinesOf(definition: TableDefinition, findTable: FindTable): Outlines {
  const evaluate =
    (rule: RuleName): EvaluateFor =>
    (caller) => {
      let failure: unknown
      const report = ({ error }: { readonly error: unknown }): void => {
        failure = error
      }
      const permissions = permissionsOf(caller, definition, readScopeOf(definition.table.name), findTable, report)
      const trees: Readonly<Record<RuleName, () => Expr>> = {
        read: () => permissions.read(),
        insert: () => permissions.insert(),
        'update.before': () => permissions.updateBefore(),
        'update.after': () => permissions.updateAfter(),
        delete: () => permissions.delete(),
      }
      const expr = trees[rule]()
      return failure === undefined ? { expr } : { expr, failure }
    }
  const outline = (rule: RuleName): RuleOutline => outlineRule(evaluate(rule))
  return {
    read: outline('read'),
    insert: outline('insert'),
    'update.before': outline('update.before'),
    'update.after': outline('update.after'),
    delete: outline('delete'),
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** A table or bucket with what its rules return. */
export interface OutlinedTable {
  readonly definition: TableDefinition
  /** Null for a bucket. */
  readonly namespace: NamespaceDefinition | null
  readonly name: string
  readonly outlines: Outlines
  /** Of a dynamic namespace. */
  readonly entry: Entry | null
}

function tableOf({ namespace, name, outlines, entry }: OutlinedTable): MatrixTable {
  const cellsOf = (operation: MatrixOperation): Cells => {
    const parts = rulesOf[operation].map((name): CellPart => ({ name, outline: outlines[name] }))
    const cell = (kind: CallerKind): Cell => {
      const own = cellOf(parts, kind)
      return entry ? bothCells(entry.cells[kind], own) : own
    }
    return Object.fromEntries(callerKinds.map((kind) => [kind, cell(kind)])) as Cells
  }
  const operations = Object.fromEntries(matrixOperations.map((operation) => [operation, cellsOf(operation)]))
  const named = [...Object.entries(outlines), ...(entry ? [['instance', entry] as const] : [])]
  return {
    kind: namespace ? 'table' : 'bucket',
    namespace: namespace?.name ?? null,
    hasInstances: namespace?.instance ?? false,
    name,
    operations: operations as MatrixTable['operations'],
    reads: [...new Set(named.flatMap(([, { reads }]) => reads))].sort(),
    failures: named.flatMap(([name, { failure }]) => (failure === undefined ? [] : [`${name}: ${messageOf(failure)}`])),
  }
}

export const findTableIn =
  (namespace: NamespaceDefinition): FindTable =>
  (name) => {
    const found = namespace.tables.get(name)
    if (!found) throw new Error(`There is no table "${name}" in namespace "${namespace.name}"`)
    return found.table
  }

/** Evaluates every rule for the sample callers; in slices, since a configuration may have hundreds of tables. */
export async function outlineTables({ namespaces, buckets, ruleEvaluator }: MatrixDeps): Promise<OutlinedTable[]> {
  const nextSlice = createSlices()
  const outlined: OutlinedTable[] = []
  for (const namespace of namespaces().values()) {
    const entry = namespace.instance ? entryOf(namespace, ruleEvaluator.tablesOf) : null
    for (const [name, definition] of namespace.tables) {
      const outlines = outlinesOf(definition, findTableIn(namespace))
      outlined.push({ definition, namespace, name, outlines, entry })
      const pause = nextSlice()
      if (pause) await pause
    }
  }
  for (const [name, { objects: definition }] of buckets()) {
    const outlines = outlinesOf(definition, ruleEvaluator.tablesOf(null))
    outlined.push({ definition, namespace: null, name, outlines, entry: null })
  }
  return outlined
}

export const buildMatrix = async (deps: MatrixDeps): Promise<MatrixTable[]> => (await outlineTables(deps)).map(tableOf)
