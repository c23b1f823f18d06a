import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createKernel, rowAlignBytes } from './kernel.ts'

const floatsPerRow = rowAlignBytes / 4

describe('the kernel', () => {
  test('gives sums of products and of squared differences, row by row, in the order asked for', () => {
    const row = fc.array(fc.float({ min: -1000, max: 1000, noNaN: true }), {
      minLength: 3 * floatsPerRow,
      maxLength: 3 * floatsPerRow,
    })
    const { memory, dots, squares } = createKernel()
    const stride = 3 * rowAlignBytes
    const [numbersAt, queryAt, resultsAt, rowsAt] = [0, 4096, 8192, 16_384]
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 20 }), row, (rows, query) => {
        const order = rows.map((_, index) => rows.length - 1 - index)
        new Uint32Array(memory.buffer, numbersAt).set(order)
        new Float32Array(memory.buffer, queryAt).set(query)
        new Float32Array(memory.buffer, rowsAt).set(rows.flat())
        const results = () => [...new Float32Array(memory.buffer, resultsAt, rows.length)]
        dots(numbersAt, rows.length, queryAt, rowsAt, stride, resultsAt)
        const products = results()
        squares(numbersAt, rows.length, queryAt, rowsAt, stride, resultsAt)
        const distances = results()
        for (const [place, number] of order.entries()) {
          const values = rows[number] ?? []
          let [product, square, size] = [0, 0, 1]
          for (const [index, value] of values.entries()) {
            const other = query[index] ?? 0
            product += value * other
            square += (value - other) ** 2
            size += value ** 2 + other ** 2
          }
          expect(Math.abs((products[place] ?? Number.NaN) - product)).toBeLessThan(size * 1e-5)
          expect(Math.abs((distances[place] ?? Number.NaN) - square)).toBeLessThan(size * 1e-5)
        }
      }),
    )
  })

  test('writes nothing when asked for nothing', () => {
    const { memory, dots } = createKernel()
    const before = new Uint8Array(memory.buffer).slice()
    dots(0, 0, 4096, 16_384, rowAlignBytes, 8192)
    expect(new Uint8Array(memory.buffer)).toEqual(before)
  })

  test('reaches rows beyond the first two gigabytes', () => {
    const { memory, dots } = createKernel()
    const rowNumber = 40_000_000
    memory.grow(Math.ceil((16_384 + (rowNumber + 1) * rowAlignBytes) / 65_536))
    new Uint32Array(memory.buffer, 0, 1)[0] = rowNumber
    new Float32Array(memory.buffer, 4096, floatsPerRow).fill(2)
    new Float32Array(memory.buffer, 16_384 + rowNumber * rowAlignBytes, floatsPerRow).fill(3)
    dots(0, 1, 4096, 16_384, rowAlignBytes, 8192)
    expect(new Float32Array(memory.buffer, 8192, 1)[0]).toBe(6 * floatsPerRow)
  })
})
