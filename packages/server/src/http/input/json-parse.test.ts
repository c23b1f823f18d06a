import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bodyItemsMax, parsePieceChars } from '../../limits/api.ts'
import { JsonBoundError, JsonText, parseJsonInSlices } from './json-parse.ts'

const parse = (text: string, depthMax = 64): Promise<unknown> => parseJsonInSlices(text, { depthMax })
const filler = '"x",'.repeat(parsePieceChars / 2)

test('returns the result of JSON.parse, wherever a large container is', async () => {
  const large = `[${filler}1]`
  for (const text of [
    large,
    `  {"a" : ${large} , "b":[ ] , "c":{}, "a":${large}}\n`,
    `[ ${large} , ${large} , 1 , ${large} ,{ "a" : ${large} , "b" : ${large} } ]`,
    `[${large}${' '.repeat(parsePieceChars)},1]`,
    `[[[${large},${large}]],{"x":[1,{"y":${large},"z":"],["}]}, "\\\\\\"", 1.5e3 ]`,
    `{"__proto__":${large},"constructor":{"__proto__":1,"k":${large}}}`,
    `{${Array.from({ length: 60_000 }, (_, n) => `"n${n % 50_000}":${n}`).join(' , ')}}`,
    `{"a":"${'é"\\'.replaceAll(/["\\]/g, '\\$&').repeat(parsePieceChars)}","b":[${' '.repeat(3 * parsePieceChars)}]}`,
    '[]',
    ' {} ',
    ' 1 ',
    '"[{"',
    'null',
    `[${'[],'.repeat(parsePieceChars)}{}]`,
  ]) {
    const value = await parse(text)
    expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)))
  }
  const { inner, ...rest } = (await parse(`{"inner":{"__proto__":${large}}}`)) as Record<string, object>
  expect([Object.keys(rest), Object.getPrototypeOf(inner)]).toEqual([[], Object.prototype])
})

test('refuses what JSON.parse refuses, wherever it is', async () => {
  const large = `[${filler}1]`
  for (const text of [
    '',
    ' ',
    '1,2',
    '[',
    ']',
    '[}',
    '{]',
    'x[]',
    '[]x',
    '[][]',
    `[${filler}]`,
    `[,${filler}1]`,
    `[${filler},1]`,
    `[${filler}1]]`,
    `[${filler}1`,
    `[${filler}1}`,
    `[${filler}1] x`,
    `[${large}${large}]`,
    `[${large}1]`,
    `[1${large}]`,
    `[,${large}]`,
    `[1,,${large}]`,
    `[${large},]`,
    `[${large},,1]`,
    `[${large} , , ${large}]`,
    `[${large} ,${' '.repeat(parsePieceChars)}]`,
    `["a"${large}]`,
    `{${large}}`,
    `{"a"${large}}`,
    `{"a":1,${large}}`,
    `{"a":1 "b":${large}}`,
    `{"a":${large} "b":1}`,
    `{"a":${large},}`,
    `{,"a":${large}}`,
    `{"a":"b":${large}}`,
    `{a:${large}}`,
    `["${filler.replaceAll('"', '')}`,
    `[${'[1],'.repeat(parsePieceChars)}{"a"}]`,
  ]) {
    expect(() => JSON.parse(text)).toThrow()
    await expect(parse(text), text.slice(0, 20)).rejects.toBeInstanceOf(SyntaxError)
  }
})

test('refuses excessive nesting before building the value', async () => {
  const nested = (depth: number): string => `${'['.repeat(depth)}${filler}1${']'.repeat(depth)}`
  expect(JSON.stringify(await parse(nested(3), 3))).toBe(JSON.stringify(JSON.parse(nested(3))))
  await expect(parse(nested(4), 3)).rejects.toBeInstanceOf(JsonBoundError)
})

test('refuses an array of more items than may be built', async () => {
  const items = `${'1,'.repeat(bodyItemsMax)}1`
  await expect(parse(`[${items}]`)).rejects.toBeInstanceOf(JsonBoundError)
})

test('returns a large member as text if it is only stored', async () => {
  const large = {
    list: Array.from({ length: parsePieceChars }, (_, n) => n / 4),
    text: 'é"\\',
    deep: [[{ a: [] }], {}],
  }
  const body = (value: string): string => `{"a" : 1, "value": ${value} , "b":[${filler}1]}`
  const options = { depthMax: 64, textMembers: ['value'] }
  for (const value of [large, [large, large], { __proto__: null, x: { value: large } }]) {
    const text = JSON.stringify(value, null, 1)
    const parsed = (await parseJsonInSlices(body(text), options)) as { value: unknown; a: number; b: unknown[] }
    expect(parsed.value).toEqual(new JsonText(JSON.stringify(value), true))
    expect([parsed.a, parsed.b.at(-1)]).toEqual([1, 1])
  }
  const [infinite, small] = await Promise.all(
    [`[${filler}1e999]`, '[1]'].map((value) => parseJsonInSlices(body(value), options) as Promise<{ value: unknown }>),
  )
  expect(infinite?.value).toMatchObject({ isExact: false })
  expect(small?.value).toEqual([1])
})

test('yields to other work', async () => {
  let others = 0
  const timer = setInterval(() => others++, 0)
  await parse(`[${`"${'x'.repeat(1000)}",`.repeat(20_000)}1]`)
  clearInterval(timer)
  expect(others).toBeGreaterThan(0)
})

test('any value round-trips, and invalid JSON is refused like JSON.parse does', async () => {
  const values = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 6 })
  const broken = fc.record({ values, at: fc.nat(), to: fc.constantFrom('', ',', ']', '}', '"', '[', '{', ':', ' ') })
  await fc.assert(
    fc.asyncProperty(broken, async ({ values, at, to }) => {
      const items = values.map((value) => JSON.stringify(value)).join(',')
      const json = `{"a":[${filler}${items},[${filler}0],${items}],"b":${JSON.stringify(values)}}`
      expect(await parse(json)).toEqual(JSON.parse(json))
      const cut = at % json.length
      const text = json.slice(0, cut) + to + json.slice(cut + 1)
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        await expect(parse(text)).rejects.toThrow()
        return
      }
      expect(await parse(text)).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})
