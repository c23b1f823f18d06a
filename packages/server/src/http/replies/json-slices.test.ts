/** Large JSON in slices: the same text as in one step, and the event loop is free in between. */
import { describe, expect, test } from 'bun:test'
import { quickResponseBytes } from '../../limits/api.ts'
import { encodeText, isJsonWithin, isQuickJson, serializeJson } from './json-slices.ts'
import { json, prepare, textOf } from './reply.ts'

const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
/** Characters of one to four bytes, and some that are escaped. */
const long = 'aé"\\\n€𝄞'.repeat(60_000)

describe('serializeJson', () => {
  test.each([
    ['a text', long],
    ['a text of halves', '\ud834'.repeat(200_000)],
    ['many small items', Array.from({ length: 50_000 }, (_, n) => ({ n, text: `item ${n}`, no: undefined }))],
    ['members', { a: long, left: undefined, f: () => 1, b: [long, undefined, null], 'c"': { d: { e: long } }, g: [] }],
    ['deep', Array.from({ length: 50 }).reduce<unknown>((inner) => ({ inner, list: [inner] }).inner, [long, {}])],
    ['a date', { at: new Date(0), text: long }],
    ['small', { a: 1 }],
  ])('%s', async (_, value) => {
    const text = decode(await serializeJson(value))
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
    expect(text.length).toBe(JSON.stringify(value).length)
  })
})

test('text is encoded unchanged', async () => {
  expect(decode(await encodeText(long))).toBe(long)
  expect(decode(await encodeText(''))).toBe('')
})

test('other requests are served between slices', async () => {
  let served = 0
  let isOver = false
  const serve = (): void => {
    served += 1
    if (!isOver) setImmediate(serve)
  }
  setImmediate(serve)
  await serializeJson(Array.from({ length: 60 }, () => long)).finally(() => {
    isOver = true
  })
  expect(served).toBeGreaterThan(2)
})

test('a small value is recognized without serializing it', () => {
  expect(isJsonWithin({ a: 'x'.repeat(100) }, 120)).toBe(true)
  expect(isJsonWithin({ a: 'x'.repeat(100) }, 100)).toBe(false)
  expect(isJsonWithin([1, 2, 3], 10)).toBe(false)
  expect(isQuickJson(Array(1_000_000).fill(0))).toBe(false)
})

test('[RES-2] a large reply is serialized while it is sent, a small one at once', async () => {
  const small = json({ a: 1 })
  expect(small.text).toBe('{"a":1}')
  const large = json({ text: 'x'.repeat(quickResponseBytes) }, 201, { ETag: '"x"' })
  expect([large.text, large.status]).toEqual([null, 201])
  const ready = await prepare(large)
  expect([ready.status, ready.headers]).toEqual([201, { ETag: '"x"' }])
  expect(textOf(ready)).toBe(textOf(large) as string)
})
