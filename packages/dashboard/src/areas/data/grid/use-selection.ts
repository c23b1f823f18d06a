/** Selecting rows of a grid, one or a range. */
import { useCallback, useRef } from 'react'
import type { RowCache } from '../rows/row-cache.ts'

/** Selects a row or takes it out; with `isRange` all from the last one that was. Rows that are not loaded are left out. */
export type SelectRow = (index: number, isSelected: boolean, isRange: boolean) => void

export function useSelection(
  cache: RowCache,
  selected: ReadonlySet<string>,
  onSelect: (selected: ReadonlySet<string>) => void,
): { readonly select: SelectRow; readonly startRange: (index: number) => void } {
  const last = useRef<number | null>(null)
  const select = useCallback<SelectRow>(
    (index, isSelected, isRange) => {
      const next = new Set(selected)
      const from = isRange && last.current !== null ? last.current : index
      for (let at = Math.min(from, index); at <= Math.max(from, index); at++) {
        const id = cache.rowAt(at)?.id
        if (id === undefined) continue
        if (isSelected) next.add(id)
        else next.delete(id)
      }
      last.current = index
      onSelect(next)
    },
    [cache, selected, onSelect],
  )
  const startRange = useCallback((index: number) => {
    last.current = index
  }, [])
  return { select, startRange }
}
