/**
 * The hot loop of vector search, as a WebAssembly module assembled here: JavaScript has no SIMD, and a JavaScript loop
 * takes ten times as long. Owns the machine code; the callers choose the rows.
 */

/**
 * Compares the query with rows. Arguments are byte offsets in the memory: a list of `count` row numbers (32 bits each),
 * the query, row 0, and the `count` results (32-bit floats). `stride` is the size of a row and of the query, a multiple
 * of `rowAlignBytes`.
 */
export type Compare = (
  rowNumbers: number,
  count: number,
  query: number,
  firstRow: number,
  stride: number,
  results: number,
) => void

export interface Kernel {
  readonly memory: WebAssembly.Memory
  /** Dot products. */
  readonly dots: Compare
  /** Sums of squared differences. */
  readonly squares: Compare
}

/** Each iteration compares four registers of four 32-bit floats. */
export const rowAlignBytes = 64

export const pageBytes = 65_536
/** The 32-bit address space. */
export const pagesMax = 65_536

/** A kernel with its own memory, initially one page. */
export function createKernel(): Kernel {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: pagesMax })
  compiled ??= new WebAssembly.Module(assemble())
  const { exports } = new WebAssembly.Instance(compiled, { host: { memory } })
  const { dots, squares } = exports
  if (typeof dots !== 'function' || typeof squares !== 'function')
    throw new Error('The kernel does not export its functions')
  return { memory, dots: dots as Compare, squares: squares as Compare }
}

let compiled: WebAssembly.Module | null = null

type Code = readonly number[]

const i32 = 0x7f
const v128 = 0x7b
const empty = 0x40
const simd = 0xfd

const get = (local: number): Code => [0x20, local]
const set = (local: number): Code => [0x21, local]
const constant = (value: number): Code => [0x41, ...leb(value)]
const i32Load: Code = [0x28, 2, 0]
const f32Store: Code = [0x38, 2, 0]
const isZero = 0x45
const isBelow = 0x49
const i32Add = 0x6a
const i32Subtract = 0x6b
const i32Multiply = 0x6c
const f32Add = 0x92
const giveUp = 0x0f
const end = 0x0b
const loop = (...body: Code[]): Code => [0x03, empty, ...body.flat(), end]
const when = (...body: Code[]): Code => [0x04, empty, ...body.flat(), end]
const again: Code = [0x0c, 0]
const againIf: Code = [0x0d, 0]

const quadLoad = (offset: number): Code => [simd, 0x00, 2, offset]
const quadZero: Code = [simd, 0x0c, ...new Array<number>(16).fill(0)]
const quadLane = (lane: number): Code => [simd, 0x1f, lane]
const quadAdd: Code = [simd, ...leb(0xe4)]
const quadSubtract: Code = [simd, ...leb(0xe5)]
const quadMultiply: Code = [simd, ...leb(0xe6)]

/**
 * LEB128: integers from 0, seven bits per byte. As signed numbers their last byte must be below 64, as all here are.
 */
function leb(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)]
}

// The parameters of `Compare`, then the locals of the loops.
const [rowNumbers, count, query, firstRow, stride, results, row, at, stop] = [0, 1, 2, 3, 4, 5, 6, 7, 8]
const sums = [9, 10, 11, 12]
const difference = 13

const advance = (local: number, by: Code): Code => [...get(local), ...by, i32Add, ...set(local)]

const addProduct = (sum: number, offset: number): Code => [
  ...get(sum),
  ...[...get(row), ...quadLoad(offset), ...get(at), ...quadLoad(offset), ...quadMultiply],
  ...[...quadAdd, ...set(sum)],
]

const addSquare = (sum: number, offset: number): Code => [
  ...[...get(row), ...quadLoad(offset), ...get(at), ...quadLoad(offset), ...quadSubtract, ...set(difference)],
  ...[...get(sum), ...get(difference), ...get(difference), ...quadMultiply, ...quadAdd, ...set(sum)],
]

function compareCode(addUp: (sum: number, offset: number) => Code): Code {
  const [first = 0, second = 0, third = 0, fourth = 0] = sums
  return [
    ...loop(
      [...get(count), isZero, ...when([giveUp])],
      [...get(firstRow), ...get(rowNumbers), ...i32Load, ...get(stride), i32Multiply, i32Add, ...set(row)],
      [...get(query), ...set(at), ...get(query), ...get(stride), i32Add, ...set(stop)],
      sums.flatMap((sum) => [...quadZero, ...set(sum)]),
      loop(
        sums.flatMap((sum, index) => addUp(sum, 16 * index)),
        advance(row, [0x41, ...signedRowAlign]),
        advance(at, [0x41, ...signedRowAlign]),
        [...get(at), ...get(stop), isBelow, ...againIf],
      ),
      [...get(first), ...get(second), ...quadAdd, ...get(third), ...get(fourth), ...quadAdd, ...quadAdd],
      [...set(first), ...get(results)],
      [0, 1, 2, 3].flatMap((lane) => [...get(first), ...quadLane(lane)]),
      [f32Add, f32Add, f32Add, ...f32Store],
      advance(rowNumbers, constant(4)),
      advance(results, constant(4)),
      [...get(count), ...constant(1), i32Subtract, ...set(count)],
      again,
    ),
    end,
  ]
}

/** 64 would read as a negative number in one byte. */
const signedRowAlign: Code = [0xc0, 0x00]

const list = (items: readonly Code[]): Code => [...leb(items.length), ...items.flat()]
const sized = (code: Code): Code => [...leb(code.length), ...code]
const section = (id: number, content: Code): Code => [id, ...sized(content)]
const text = (letters: string): Code => sized([...letters].map((letter) => letter.charCodeAt(0)))
const body = (code: Code): Code =>
  sized([
    ...list(
      [
        [3, i32],
        [5, v128],
      ].map((locals) => locals),
    ),
    ...code,
  ])

function assemble(): Uint8Array<ArrayBuffer> {
  const magic = [...'\0asm'].map((letter) => letter.charCodeAt(0))
  return Uint8Array.from([
    ...[...magic, 1, 0, 0, 0],
    ...section(1, list([[0x60, ...list(new Array<Code>(6).fill([i32])), ...list([])]])),
    ...section(2, list([[...text('host'), ...text('memory'), 2, 1, 1, ...leb(pagesMax)]])),
    ...section(3, list([[0], [0]])),
    ...section(
      7,
      list([
        [...text('dots'), 0, 0],
        [...text('squares'), 0, 1],
      ]),
    ),
    ...section(10, list([body(compareCode(addProduct)), body(compareCode(addSquare))])),
  ])
}
