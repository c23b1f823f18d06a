/** What a paste or a fill would change: a value per cell, or why there is none. */
import type { Column } from '../grid/columns.ts'
import type { CellRange } from '../grid/use-cell-range.ts'
import { draftOf, editorKind, emptyMeansNull, isReadOnly, type Parsed, parseDraft } from '../record/draft.ts'
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

/** What a cell is to have: a text, read by the type of its field, or the value of another cell. */
type CellContent =
  | { readonly text: string }
  /** `of` is the column that has the value. */
  | { readonly value: unknown; readonly of: Column }

export interface CellContents {
  readonly target: CellRange
  /** Nothing for a cell that is left as it is. */
  readonly at: (row: number, column: number) => CellContent | undefined
}

/** Cells of a range. */
export const sizeOf = ({ top, left, bottom, right }: CellRange): number => (bottom - top + 1) * (right - left + 1)

/** The position in a pattern of `size` that begins at `start` and is repeated in both directions. */
const repeated = (at: number, start: number, size: number): number => (((at - start) % size) + size) % size

/** Texts from the top left of a range on, repeated where the range is a multiple of them. */
export function pastedContents(range: CellRange, texts: readonly (readonly string[])[]): CellContents {
  const [height, width] = [texts.length, Math.max(...texts.map((row) => row.length))]
  const lengthOf = (size: number, of: number): number => (size % of === 0 ? size : of)
  const { top, left } = range
  return {
    target: {
      top,
      left,
      bottom: top + lengthOf(range.bottom - top + 1, height) - 1,
      right: left + lengthOf(range.right - left + 1, width) - 1,
    },
    at(row, column) {
      const text = texts[repeated(row, top, height)]?.[repeated(column, left, width)]
      return text === undefined ? undefined : { text }
    },
  }
}

/** The values of a range, repeated in the cells beside it. `values` are those of its rows. */
export function filledContents(
  source: CellRange,
  target: CellRange,
  columns: readonly Column[],
  values: readonly Row['values'][],
): CellContents {
  const width = source.right - source.left + 1
  return {
    target,
    at(row, column) {
      const of = columns[source.left + repeated(column, source.left, width)] as Column
      const record = values[repeated(row, source.top, values.length)]
      return record && { value: record[of.name] ?? null, of }
    },
  }
}

/** Whether the row has the complete value of a column; fields that are not declared may be absent. */
export const hasValue = (row: Row, { name, field }: Column): boolean =>
  !row.cut.has(name) && (name in row.values || field === null)

export function planCells({ rowAt, rows, columns }: Cells, { target, at: contentAt }: CellContents): CellPlan {
  const [bottom, right] = [Math.min(rows - 1, target.bottom), Math.min(columns.length - 1, target.right)]
  const changes: CellChange[] = []
  const problems: CellProblem[] = []
  for (let at = target.top; at <= bottom; at++) {
    const row = rowAt(at)
    for (let to = target.left; to <= right; to++) {
      const column = columns[to] as Column
      const content = contentAt(at, to)
      if (content === undefined) continue
      const { name, field } = column
      if (row === undefined)
        problems.push({ record: `row ${at + 1}`, name, problem: 'is not loaded; scroll to it first' })
      else if (isReadOnly(name, field, false)) problems.push({ record: row.id, name, problem: 'cannot be changed' })
      else if (!hasValue(row, column) || !isStored(content, column, row.values[name])) {
        const parsed = parseContent(content, column)
        if ('error' in parsed) problems.push({ record: row.id, name, problem: parsed.error })
        else changes.push({ row, name, value: parsed.value })
      }
    }
  }
  return { changes, problems }
}

function isStored(content: CellContent, column: Column, stored: unknown): boolean {
  if ('text' in content) return textOf(column, stored) === content.text
  if (stored === null || stored === undefined) return content.value === null
  return content.of.name === column.name
    ? JSON.stringify(stored) === JSON.stringify(content.value)
    : textOf(column, stored) === textOf(content.of, content.value)
}

/** Values of the same column are taken as they are, others by their text. */
function parseContent(content: CellContent, column: Column): Parsed {
  if ('value' in content && (content.value === null || content.of.name === column.name)) return { value: content.value }
  const text = 'text' in content ? content.text : textOf(content.of, content.value)
  const { name, field } = column
  const kind = editorKind(name, field)
  const problem = kindProblem(kind, text, field?.enum)
  if (problem !== null) return { error: problem }
  return parseDraft(kind, emptyMeansNull(name, kind, kind === 'boolean' ? text.toLowerCase() : text), field)
}

/** What the editors of these kinds cannot produce. */
function kindProblem(kind: string, text: string, values: readonly unknown[] | undefined): string | null {
  if (text === '') return null
  if (kind === 'boolean' && !['true', 'false'].includes(text.toLowerCase())) return 'must be true or false'
  if (kind === 'enum' && !values?.some((value) => String(value) === text)) return `must be one of ${values?.join(', ')}`
  return null
}
