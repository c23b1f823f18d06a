/** The columns of a grid: which, in which order, how wide, and in which group they are read. */
import type { FieldDescription, FieldType, TableDescription } from '../../../app/queries.ts'

export interface Column {
  readonly name: string
  /** Null for a field that is not declared. */
  readonly field: FieldDescription | null
  readonly width: number
  /** From the start of the row. */
  readonly left: number
  /** The index of its group; see `groupsOf`. */
  readonly group: number
}

/** Columns that are read together. */
export const columnsPerGroup = 12

export const columnWidthMin = 60
export const columnWidthMax = 900

/** Room for the checkbox at the start of a row. */
export const markerWidth = 44

const widthOf: Readonly<Record<FieldType, number>> = {
  string: 200,
  text: 300,
  number: 110,
  boolean: 96,
  datetime: 176,
  json: 240,
  geo: 160,
}

const idWidth = 170

const defaultWidth = (name: string, field: FieldDescription | null): number =>
  name === 'id' ? idWidth : field ? widthOf[field.type] : widthOf.string

/** All fields that a table is known to have: the declared ones, then those that its rows have besides. */
export const fieldNames = (table: TableDescription, found: readonly string[]): readonly string[] => [
  ...new Set([...Object.keys(table.fields), ...found]),
]

export interface ColumnChoice {
  /** Shown columns in their order; null for all. */
  readonly shown: readonly string[] | null
  readonly widths: Readonly<Record<string, number>>
}

export function columnsOf(
  table: TableDescription,
  names: readonly string[],
  { shown, widths }: ColumnChoice,
): readonly Column[] {
  const known = new Set(names)
  const chosen = shown === null ? names : shown.filter((name) => known.has(name))
  let left = markerWidth
  return chosen.map((name, at) => {
    const field = table.fields[name] ?? null
    const width = widths[name] ?? defaultWidth(name, field)
    const column = { name, field, width, left, group: table.schemaless ? 0 : Math.floor(at / columnsPerGroup) }
    left += width
    return column
  })
}

/** The fields of each group; one group with all fields for a table without declared ones. */
export function groupsOf(table: TableDescription, columns: readonly Column[]): readonly (readonly string[] | null)[] {
  if (table.schemaless) return [null]
  const groups: string[][] = []
  for (const { name, group } of columns) {
    groups[group] ??= []
    groups[group].push(name)
  }
  return groups.length === 0 ? [['id']] : groups
}

/** The columns that overlap a range of pixels: the first and one past the last. */
export function columnRange(
  columns: readonly Column[],
  from: number,
  to: number,
): readonly [first: number, end: number] {
  let first = columns.findIndex(({ left, width }) => left + width > from)
  if (first < 0) first = Math.max(0, columns.length - 1)
  let end = first
  while (end < columns.length && (columns[end]?.left ?? 0) < to) end += 1
  return [first, end]
}
