/** Where keys move the active cell of the grid. */
import { describe, expect, test } from 'bun:test'
import { stepOf, stepped } from '../../src/areas/data/grid/keyboard.ts'
import { fillTarget } from '../../src/areas/data/grid/use-fill-drag.ts'

const bounds = { rows: 4, columns: 3 }
const cell = (row: number, column: number) => ({ row, column })

describe('the end of an edit', () => {
  test('Enter moves down, Tab to the right, and Shift reverses them', () => {
    const ends = (key: string, shiftKey: boolean) => {
      const step = stepOf({ key, shiftKey })
      return step && stepped(cell(1, 1), step, null, bounds).cell
    }
    expect(ends('Enter', false)).toEqual(cell(2, 1))
    expect(ends('Enter', true)).toEqual(cell(0, 1))
    expect(ends('Tab', false)).toEqual(cell(1, 2))
    expect(ends('Tab', true)).toEqual(cell(1, 0))
    expect(ends('Escape', false)).toBeNull()
  })

  test('the active cell stays in the grid', () => {
    expect(stepped(cell(3, 2), 'down', null, bounds).cell).toEqual(cell(3, 2))
    expect(stepped(cell(3, 2), 'right', null, bounds).cell).toEqual(cell(3, 2))
    expect(stepped(cell(0, 0), 'up', null, bounds).cell).toEqual(cell(0, 0))
    expect(stepped(cell(0, 0), 'left', null, bounds).cell).toEqual(cell(0, 0))
  })

  test('Enter after Tab begins the next row below the first cell', () => {
    const second = stepped(cell(0, 0), 'right', null, bounds)
    const third = stepped(second.cell, 'right', second.entry, bounds)
    expect(third).toEqual({ cell: cell(0, 2), entry: 0 })
    expect(stepped(third.cell, 'down', third.entry, bounds)).toEqual({ cell: cell(1, 0), entry: null })
    expect(stepped(third.cell, 'up', third.entry, bounds).cell).toEqual(cell(0, 2))
  })
})

describe('the cells that a drag fills', () => {
  const source = { top: 2, bottom: 3, left: 2, right: 3 }
  test.each([
    [5, 2, false, { ...source, top: 4, bottom: 5 }],
    [0, 2, false, { ...source, top: 0, bottom: 1 }],
    [2, 5, true, { ...source, left: 4, right: 5 }],
    [9, 0, true, { ...source, left: 0, right: 1 }],
    [3, 9, false, null],
    [9, 3, true, null],
  ])('at row %i and column %i, sideways %p', (row, column, isSideways, target) => {
    expect(fillTarget(source, { row, column, isSideways })).toEqual(target)
  })
})
