/**
 * JSON values of states: their size as text, and validated copies. Defines which values a state can contain; `draft`
 * intercepts the assignments.
 */
import { roomStateDepthMax } from '../../../../limits/rooms.ts'
import { ActionError, invalidState } from '../handlers/action-error.ts'

export type JsonValue = string | number | boolean | null | JsonArray | JsonRecord
export type JsonArray = JsonValue[]
export interface JsonRecord {
  [key: string]: JsonValue
}

/** Keys with a meaning in JavaScript; a state never contains them. */
export const isForbiddenKey = (key: string): boolean =>
  key === '__proto__' || key === 'constructor' || key === 'prototype'

const plainText = /^[ !#-[\]-~]*$/

/** Bytes of a string in JSON, with its quotes. */
export const textBytes = (text: string): number =>
  text.length < 64 && plainText.test(text) ? text.length + 2 : Buffer.byteLength(JSON.stringify(text))

/** `JSON.stringify` of a JSON value, with a fast path for short values, which are the most frequent. */
export function jsonText(value: JsonValue): string {
  if (typeof value === 'string')
    return value.length < 64 && plainText.test(value) ? `"${value}"` : JSON.stringify(value)
  if (typeof value === 'number') return String(value)
  return value === null ? 'null' : JSON.stringify(value)
}

/** Bytes of a member of an object without its value: the key, the colon, and a comma for each but the last. */
export const memberBytes = (key: string): number => textBytes(key) + 2

/** Bytes of a number in JSON. Small integers, the most frequent numbers, are measured without a string. */
function numberBytes(value: number): number {
  if (!(Number.isInteger(value) && value >= 0 && value < 100_000)) return String(value).length
  if (value < 100) return value < 10 ? 1 : 2
  if (value < 10_000) return value < 1000 ? 3 : 4
  return 5
}

/** Bytes of a value that is neither object nor array. */
export function scalarBytes(value: string | number | boolean | null): number {
  if (typeof value === 'string') return textBytes(value)
  if (typeof value === 'number') return numberBytes(value)
  return value === false ? 5 : 4
}

const counts = new WeakMap<JsonRecord, number>()

/** The number of members of an object. Counting enumerates all keys, so the result is cached. */
export function memberCount(object: JsonRecord): number {
  let count = counts.get(object)
  if (count === undefined) {
    count = Object.keys(object).length
    counts.set(object, count)
  }
  return count
}

/** Sets a member, or deletes it if the value is undefined. The only function that changes objects in a state. */
export function setMember(object: JsonRecord, key: string, value: JsonValue | undefined): void {
  const count = counts.get(object)
  if (count !== undefined && Object.hasOwn(object, key) === (value === undefined))
    counts.set(object, count + (value === undefined ? -1 : 1))
  if (value === undefined) delete object[key]
  else object[key] = value
}

/** The shortest member: an empty key, a digit and a comma. */
const memberBytesMin = 5

/** Bytes of a value as JSON. Stops counting beyond `most` and returns a number above it. */
export function jsonBytes(value: JsonValue, most = Number.POSITIVE_INFINITY): number {
  if (typeof value !== 'object' || value === null) return scalarBytes(value)
  let bytes = 2
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && bytes <= most; at++)
      bytes += jsonBytes(value[at] as JsonValue, most - bytes) + (at === 0 ? 0 : 1)
    return bytes
  }
  if (most !== Number.POSITIVE_INFINITY && memberCount(value) * memberBytesMin > most) return most + 1
  let comma = 0
  for (const key in value) {
    bytes += memberBytes(key) - 1 + comma
    bytes += jsonBytes(value[key] as JsonValue, most - bytes)
    comma = 1
    if (bytes > most) break
  }
  return bytes
}

export interface Copied {
  readonly value: JsonValue
  readonly bytes: number
}

/**
 * Copies a value from a handler and counts its bytes. Undefined members are omitted and undefined elements become null,
 * as in JSON. Throws `INVALID_STATE` for values without a JSON form (functions, NaN, dates, instances, cycles,
 * forbidden keys) and for nesting beyond the limit, counted from `depth`; `STATE_TOO_LARGE` above `bytesMax`.
 */
export function copyJson(source: unknown, depth: number, bytesMax: number): Copied {
  // The most frequent values, which are copies of themselves.
  if (typeof source === 'boolean' || (Number.isFinite(source) && source !== 0)) {
    const value = source as boolean | number
    const bytes = scalarBytes(value)
    if (bytes <= bytesMax) return { value, bytes }
  }
  const open: object[] = []
  let bytes = 0

  function count(more: number): void {
    bytes += more
    if (bytes > bytesMax) throw new ActionError('STATE_TOO_LARGE', `A state must be at most ${bytesMax} bytes of JSON`)
  }

  function copyArray(from: readonly unknown[]): JsonArray {
    // Each element takes at least two bytes: a huge sparse array is rejected before it is traversed.
    count(2 + Math.max(0, from.length - 1))
    const to: JsonArray = []
    for (let at = 0; at < from.length; at++) to.push(copy(from[at] ?? null))
    return to
  }

  function copyObject(from: Readonly<Record<string, unknown>>): JsonRecord {
    count(2)
    const to: JsonRecord = {}
    let isFirst = true
    for (const key of Object.keys(from)) {
      const value = from[key]
      if (value === undefined) continue
      if (isForbiddenKey(key)) throw invalidState(`A state must not contain the key ${key}`)
      count(memberBytes(key) - (isFirst ? 1 : 0))
      isFirst = false
      to[key] = copy(value)
    }
    return to
  }

  function copy(value: unknown): JsonValue {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        count(scalarBytes(value))
        return value
      case 'number':
        if (!Number.isFinite(value)) throw invalidState(`A state must not contain ${value}`)
        count(scalarBytes(value))
        return value === 0 ? 0 : value
      case 'object':
        if (value === null) {
          count(4)
          return null
        }
        return copyNested(value)
      default:
        throw invalidState(`A state must not contain a ${typeof value}`)
    }
  }

  function copyNested(value: object): JsonValue {
    if (open.includes(value)) throw invalidState('A state must not contain a cycle')
    if (depth + open.length >= roomStateDepthMax)
      throw invalidState(`A state must be nested at most ${roomStateDepthMax} levels deep`)
    open.push(value)
    let to: JsonValue
    if (Array.isArray(value)) to = copyArray(value)
    else {
      const prototype: unknown = Object.getPrototypeOf(value)
      if (prototype !== Object.prototype && prototype !== null)
        throw invalidState(
          `A state must contain plain objects only, not ${value.constructor?.name ?? 'instances of classes'}`,
        )
      to = copyObject(value as Record<string, unknown>)
    }
    open.pop()
    return to
  }

  const value = copy(source)
  return { value, bytes }
}
