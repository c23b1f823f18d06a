/**
 * The computed fields of a table: the order in which they are computed, and complete rows. Only complete rows can be
 * stored: the type `CompleteRow` has no other source than `complete`.
 */
import { fingerprint } from '../../base/crypto/hash.ts'
import type { Row } from '../matches.ts'
import type { Table } from '../table.ts'
import { evaluate } from './evaluate.ts'
import { type ComputedField, type Expression, operandsOf } from './expression.ts'

/** Increased when an operation gets another result for the same operands: stored values are computed again then. */
const operationsVersion = 1

/**
 * Orders computed fields so that each comes after those that it reads. Returns the names of a cycle instead, if there
 * is one.
 */
export function orderComputed(expressions: ReadonlyMap<string, Expression>): readonly ComputedField[] | string[] {
  const ordered = new Map<string, ComputedField>()
  const path: string[] = []
  function visit(name: string, expression: Expression): boolean {
    if (ordered.has(name)) return true
    const isCycle = path.includes(name)
    path.push(name)
    if (isCycle) return false
    const operands = operandsOf(expression)
    const parts: string[] = []
    for (const operand of operands) {
      const other = expressions.get(operand)
      if (!other) continue
      if (!visit(operand, other)) return false
      parts.push((ordered.get(operand) as ComputedField).fingerprint)
    }
    path.pop()
    const text = JSON.stringify([operationsVersion, expression, parts])
    ordered.set(name, Object.freeze({ name, expression, operands, fingerprint: fingerprint(text) }))
    return true
  }
  for (const [name, expression] of expressions)
    if (!visit(name, expression)) return path.slice(path.indexOf(path.at(-1) as string))
  return [...ordered.values()]
}

declare const isComplete: unique symbol

/** A row whose computed fields follow from its other fields. */
export type CompleteRow = Record<string, unknown> & { readonly [isComplete]: true }

/** The row with its computed fields; the row itself if they are right. */
export function complete({ computed }: Pick<Table, 'computed'>, row: Row): CompleteRow {
  let completed = row as Record<string, unknown>
  for (const { name, expression } of computed) {
    const value = evaluate(expression, completed)
    if (completed[name] === value) continue
    if (completed === row) completed = { ...row }
    completed[name] = value
  }
  return completed as CompleteRow
}

/** Names of the computed fields whose values differ. */
export function findRecomputed({ computed }: Pick<Table, 'computed'>, before: Row, after: CompleteRow): string[] {
  const names: string[] = []
  for (const { name } of computed) if (before[name] !== after[name]) names.push(name)
  return names
}
