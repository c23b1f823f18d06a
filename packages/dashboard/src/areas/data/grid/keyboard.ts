/** Where keys move the active cell of a grid, also when they end an edit. */

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

/** Where the active cell goes as an edit ends: by Enter, Shift Enter, Tab and Shift Tab. */
export type Step = 'down' | 'up' | 'right' | 'left'

/** The step of a key that ends an edit; null for other keys. */
export function stepOf({ key, shiftKey }: { readonly key: string; readonly shiftKey: boolean }): Step | null {
  if (key === 'Enter') return shiftKey ? 'up' : 'down'
  if (key === 'Tab') return shiftKey ? 'left' : 'right'
  return null
}

/**
 * The cell beside one whose edit has ended. As in a spreadsheet, Enter after a series of Tab goes below the cell where
 * the series began: `entry` is its column, null outside a series.
 */
export function stepped(
  { row, column }: ActiveCell,
  step: Step,
  entry: number | null,
  { rows, columns }: Pick<Bounds, 'rows' | 'columns'>,
): { readonly cell: ActiveCell; readonly entry: number | null } {
  const at = (nextRow: number, nextColumn: number): ActiveCell => ({
    row: Math.min(rows - 1, Math.max(0, nextRow)),
    column: Math.min(columns - 1, Math.max(0, nextColumn)),
  })
  switch (step) {
    case 'down':
      return { cell: at(row + 1, entry ?? column), entry: null }
    case 'up':
      return { cell: at(row - 1, column), entry: null }
    case 'right':
      return { cell: at(row, column + 1), entry: entry ?? column }
    case 'left':
      return { cell: at(row, column - 1), entry: entry ?? column }
  }
}
