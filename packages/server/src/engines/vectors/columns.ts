/**
 * Namespace and indexed metadata of an index's vectors, a column each, by slot; conditions compile to functions that
 * test a slot in a few nanoseconds. The caller validates conditions.
 */
import { compareText } from '../../base/text/text.ts'
import { grown } from './rows.ts'
import type { VectorCondition, VectorMetadataValue } from './vectors.ts'

/** Whether the vector in the slot is accepted. */
export type SlotTest = (slot: number) => boolean

export interface VectorColumns {
  readonly bytes: number
  put(slot: number, namespace: string, metadata: readonly VectorMetadataValue[]): void
  /** Clears the slot. */
  remove(slot: number): void
  /** Null if everything is accepted. Throws for a field without a column. */
  compile(namespace: string | null, conditions: readonly VectorCondition[]): SlotTest | null
}

export function createVectorColumns(fields: readonly string[]): VectorColumns {
  const namespaces = createColumn()
  const columns = new Map(fields.map((field) => [field, createColumn()]))
  const inOrder = [...columns.values()]

  return {
    get bytes() {
      return [namespaces, ...inOrder].reduce((sum, column) => sum + column.bytes, 0)
    },
    put(slot, namespace, metadata) {
      namespaces.set(slot, namespace)
      for (const [index, column] of inOrder.entries()) column.set(slot, metadata[index] ?? null)
    },
    remove(slot) {
      for (const column of [namespaces, ...inOrder]) column.set(slot, null)
    },
    compile(namespace, conditions) {
      const tests: SlotTest[] = []
      if (namespace !== null) tests.push(namespaces.compile({ field: '', operator: '=', value: namespace }))
      for (const condition of conditions) {
        const column = columns.get(condition.field)
        if (!column) throw new Error(`The copy has no column ${condition.field}`)
        tests.push(column.compile(condition))
      }
      const [only] = tests
      if (tests.length <= 1) return only ?? null
      return (slot) => tests.every((test) => test(slot))
    },
  }
}

const isNone = 0
const isNumber = 1
const isText = 2
const isBoolean = 3

interface Column {
  readonly bytes: number
  set(slot: number, value: VectorMetadataValue): void
  compile(condition: VectorCondition): SlotTest
}

/** Each value is a kind and a number: itself, the code of a text, or 0 and 1. */
function createColumn(): Column {
  const texts = createTexts()
  let kinds = new Uint8Array(64)
  let numbers = new Float64Array(64)

  function set(slot: number, value: VectorMetadataValue): void {
    while (slot >= kinds.length) {
      kinds = grown(kinds, new Uint8Array(kinds.length * 2))
      numbers = grown(numbers, new Float64Array(numbers.length * 2))
    }
    const kind = kindOf(value)
    // Acquires the new text before releasing the old one: if they are the same, its code stays.
    const number = typeof value === 'string' ? texts.take(value) : Number(value)
    if (kinds[slot] === isText) texts.release(numbers[slot] ?? 0)
    kinds[slot] = kind
    numbers[slot] = number
  }

  function equals(value: VectorMetadataValue): SlotTest {
    const kind = kindOf(value)
    const number = typeof value === 'string' ? texts.find(value) : Number(value)
    if (number === undefined) return () => false
    return (slot) => kinds[slot] === kind && numbers[slot] === number
  }

  function isAnyOf(values: readonly VectorMetadataValue[]): SlotTest {
    const accepted = new Map<number, Set<number>>()
    for (const value of values) {
      const number = typeof value === 'string' ? texts.find(value) : Number(value)
      if (number === undefined) continue
      const kind = kindOf(value)
      const ofKind = accepted.get(kind) ?? new Set()
      accepted.set(kind, ofKind.add(number))
    }
    return (slot) => accepted.get(kinds[slot] ?? isNone)?.has(numbers[slot] ?? 0) ?? false
  }

  function inOrder(operator: '<' | '<=' | '>' | '>=', value: VectorMetadataValue): SlotTest {
    const satisfies = orders[operator]
    if (typeof value === 'number') return (slot) => kinds[slot] === isNumber && satisfies((numbers[slot] ?? 0) - value)
    if (typeof value !== 'string') return () => false
    const accepted = texts.codesWhere((text) => satisfies(compareText(text, value)))
    return (slot) => kinds[slot] === isText && accepted.has(numbers[slot] ?? 0)
  }

  return {
    get bytes() {
      return kinds.byteLength + numbers.byteLength + texts.bytes
    },
    set,
    compile(condition) {
      switch (condition.operator) {
        case '=':
          return equals(condition.value)
        case '!=':
          return not(equals(condition.value))
        case 'in':
          return isAnyOf(condition.values)
        case 'not in':
          return not(isAnyOf(condition.values))
        default:
          return inOrder(condition.operator, condition.value)
      }
    },
  }
}

const not =
  (test: SlotTest): SlotTest =>
  (slot) =>
    !test(slot)

const orders = {
  '<': (difference: number) => difference < 0,
  '<=': (difference: number) => difference <= 0,
  '>': (difference: number) => difference > 0,
  '>=': (difference: number) => difference >= 0,
}

function kindOf(value: VectorMetadataValue): number {
  if (value === null) return isNone
  if (typeof value === 'number') return isNumber
  return typeof value === 'string' ? isText : isBoolean
}

interface Texts {
  readonly bytes: number
  /** Acquires a text (reference counted) and returns its code. */
  take(text: string): number
  release(code: number): void
  find(text: string): number | undefined
  codesWhere(accepts: (text: string) => boolean): ReadonlySet<number>
}

/** Interns texts as small numbers: metadata repeats itself. */
function createTexts(): Texts {
  const codes = new Map<string, number>()
  const uses: number[] = []
  const textOf: string[] = []
  const free: number[] = []
  let chars = 0

  return {
    get bytes() {
      return chars * 2 + uses.length * textEntryBytes
    },
    take(text) {
      let code = codes.get(text)
      if (code === undefined) {
        code = free.pop() ?? uses.length
        codes.set(text, code)
        uses[code] = 0
        textOf[code] = text
        chars += text.length
      }
      uses[code] = (uses[code] ?? 0) + 1
      return code
    },
    release(code) {
      const left = (uses[code] ?? 0) - 1
      uses[code] = left
      if (left > 0) return
      const text = textOf[code] ?? ''
      chars -= text.length
      codes.delete(text)
      textOf[code] = ''
      free.push(code)
    },
    find: (text) => codes.get(text),
    codesWhere: (accepts) => new Set([...codes].filter(([text]) => accepts(text)).map(([, code]) => code)),
  }
}

/** Approximate overhead of a text beside its characters. */
const textEntryBytes = 100
