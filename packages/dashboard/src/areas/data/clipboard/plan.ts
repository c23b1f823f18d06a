/** What a paste or a fill would change: a value per cell, or why there is none. */
import type { Column } from '../grid/columns.ts'
import type { CellRange } from '../grid/use-cell-range.ts'
import { draftOf, editorKind, emptyMeansNull, isReadOnly, parseDraft } from '../record/draft.ts'
import type { Row } from '../rows/row.ts'

export interface CellChange {
  readonly row: Row
  readonly name: string
  readonly value: unknown
}

export interface CellProblem {
  /** The id of the record, or the number of a row that is not loaded. */
  readonly record: string
  readonly name: string
  readonly problem: string
}

export interface CellPlan {
  readonly changes: readonly CellChange[]
  readonly problems: readonly CellProblem[]
}

/** Cells of one paste or fill. */
export const cellsMax = 20_000

/** The text of a value, as it is copied and edited. */
export function textOf({ name, field }: Column, value: unknown): string {
  const kind = editorKind(name, field)
  if (value === null || value === undefined) return ''
  return kind === 'json' ? JSON.stringify(value) : (draftOf(kind, value) ?? '')
}

interface Cells {
  readonly rowAt: (index: number) => Row | undefined
  readonly rows: number
  readonly columns: readonly Column[]
}

/** Texts from the top left of a range on, repeated where the range is a multiple of them. */
export function planCells(
  { rowAt, rows, columns }: Cells,
  range: CellRange,
  texts: readonly (readonly string[])[],
): CellPlan {
  const [height, width] = [texts.length, Math.max(...texts.map((row) => row.length))]
  const repeated = (size: number, of: number): number => (size % of === 0 ? size : of)
  const bottom = Math.min(rows, range.top + repeated(range.bottom - range.top + 1, height))
  const right = Math.min(columns.length, range.left + repeated(range.right - range.left + 1, width))
  const changes: CellChange[] = []
  const problems: CellProblem[] = []
  for (let at = range.top; at < bottom; at++) {
    const row = rowAt(at)
    const line = texts[(at - range.top) % height] ?? []
    for (let to = range.left; to < right; to++) {
      const column = columns[to] as Column
      const text = line[(to - range.left) % width]
      if (text === undefined) continue
      const { name, field } = column
      if (row === undefined)
        problems.push({ record: `row ${at + 1}`, name, problem: 'is not loaded; scroll to it first' })
      else if (isReadOnly(name, field, false)) problems.push({ record: row.id, name, problem: 'cannot be changed' })
      else if (textOf(column, row.values[name]) !== text || row.cut.has(name)) {
        const kind = editorKind(name, field)
        const parsed = parseDraft(kind, text === '' ? emptyMeansNull(name, kind, text) : text, field)
        const problem = 'error' in parsed ? parsed.error : kindProblem(kind, text, field?.enum)
        if (problem !== null) problems.push({ record: row.id, name, problem })
        else if ('value' in parsed) changes.push({ row, name, value: parsed.value })
      }
    }
  }
  return { changes, problems }
}

/** What the editors of these kinds cannot produce. */
function kindProblem(kind: string, text: string, values: readonly unknown[] | undefined): string | null {
  if (text === '') return null
  if (kind === 'boolean' && !['true', 'false'].includes(text.toLowerCase())) return 'must be true or false'
  if (kind === 'enum' && !values?.some((value) => String(value) === text)) return `must be one of ${values?.join(', ')}`
  return null
}
