/** Where keys move the active cell of a grid. */

export interface ActiveCell {
  readonly row: number
  readonly column: number
}

interface Key {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
}

interface Bounds {
  readonly rows: number
  readonly columns: number
  /** Rows that are in view at a time. */
  readonly perPage: number
}

/** The cell that a key leads to; null for a key that moves nothing. */
export function moved(
  { row, column }: ActiveCell,
  { key, ctrlKey, metaKey, altKey }: Key,
  bounds: Bounds,
): ActiveCell | null {
  if (altKey || bounds.rows === 0 || bounds.columns === 0) return null
  const [lastRow, lastColumn] = [bounds.rows - 1, bounds.columns - 1]
  const isFar = ctrlKey || metaKey
  const targets: Readonly<Record<string, ActiveCell>> = {
    ArrowUp: { row: isFar ? 0 : row - 1, column },
    ArrowDown: { row: isFar ? lastRow : row + 1, column },
    ArrowLeft: { row, column: isFar ? 0 : column - 1 },
    ArrowRight: { row, column: isFar ? lastColumn : column + 1 },
    PageUp: { row: row - bounds.perPage, column },
    PageDown: { row: row + bounds.perPage, column },
    Home: { row: isFar ? 0 : row, column: 0 },
    End: { row: isFar ? lastRow : row, column: lastColumn },
  }
  const target = targets[key]
  if (!target) return null
  const clamp = (value: number, max: number): number => Math.min(max, Math.max(0, value))
  return { row: clamp(target.row, lastRow), column: clamp(target.column, lastColumn) }
}
