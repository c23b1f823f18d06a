import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { z } from 'zod'
import { ApiError } from '../../errors.ts'
import { jsonDepthMax } from '../../limits/api.ts'
import { connectRaw, refusal, serve, tiny } from '../harness.test.ts'
import { json } from '../replies/reply.ts'
import { isDeeperThan, parseJsonObject } from './body.ts'

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)
const mistake = (body: Uint8Array): string => {
  try {
    parseJsonObject(body)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  return 'accepted'
}
const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`

describe('parseJsonObject', () => {
  test.each([
    ['', 'The body is not valid JSON'],
    ['{', 'The body is not valid JSON'],
    ['{"a":1}x', 'The body is not valid JSON'],
    ["{'a':1}", 'The body is not valid JSON'],
    ['{"a":NaN}', 'The body is not valid JSON'],
    ['null', 'The body must be a JSON object'],
    ['[]', 'The body must be a JSON object'],
    ['"a"', 'The body must be a JSON object'],
    ['1', 'The body must be a JSON object'],
    [nested(jsonDepthMax), 'accepted'],
    [nested(jsonDepthMax + 1), 'The body is nested deeper than 64 levels'],
    ['['.repeat(500_000), 'The body is nested deeper than 64 levels'],
    [`{"a":"${'['.repeat(1000)}"}`, 'accepted'],
    [`{"a":"\\"${'{'.repeat(1000)}"}`, 'accepted'],
    [`{"a":[${'{},'.repeat(1000)}{}]}`, 'accepted'],
  ])('%.40s: %s', (text, outcome) => {
    expect(mistake(bytes(text))).toBe(outcome)
  })

  test.each([
    [[0x7b, 0x22, 0xff, 0x22, 0x7d]],
    [[0x7b, 0x22, 0xc0, 0x80, 0x22, 0x7d]],
    [[0xed, 0xa0, 0x80]],
    [[0xff, 0xfe, 0x7b, 0]],
  ])('bytes %p are not UTF-8', (body) => {
    expect(mistake(Uint8Array.from(body))).toBe('The body is not valid UTF-8')
  })

  test('a replacement character in the input is kept', () => {
    expect(parseJsonObject(bytes('{"a":"\ufffd"}'))).toEqual({ a: '\ufffd' })
  })

  test('__proto__ is an ordinary field and changes no prototype', () => {
    const body = parseJsonObject(bytes('{"__proto__":{"admin":true}}'))
    expect(Object.keys(body)).toEqual(['__proto__'])
    expect((body as { admin?: boolean }).admin).toBeUndefined()
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })
})

describe('isDeeperThan', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

  test('agrees with the depth of the parsed value', () => {
    const json = fc.json({ depthSize: 'large', stringUnit: fc.constantFrom(...'{}[]"\\,:a') })
    fc.assert(
      fc.property(json, fc.nat(8), (text, depthMax) => {
        expect(isDeeperThan(depthMax, text)).toBe(depthOf(JSON.parse(text)) > depthMax)
      }),
    )
  })
})

describe('over real sockets', () => {
  const echo = tiny({
    name: 'echo',
    method: 'POST',
    paths: ['/echo'],
    body: z.looseObject({}),
    bodyBytesMax: 100,
    handle: ({ body }) => json(body),
  })
  const jsonType = { 'Content-Type': 'application/json' }
  const post = (body: BodyInit | null, headers: Record<string, string> = jsonType) => ({
    method: 'POST',
    body,
    headers,
  })
  const chunked = (...chunks: (string | Uint8Array)[]) =>
    new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(typeof chunk === 'string' ? bytes(chunk) : chunk)
        controller.close()
      },
    })
  const head = (length: string) =>
    `POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n${length}\r\n\r\n`

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json; profile=x',
  ])('%s is accepted as JSON', async (type) => {
    const { request } = serve([echo])
    expect(await (await request('/echo', post('{"a":1}', { 'Content-Type': type }))).json()).toEqual({ a: 1 })
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'application/json+x',
    'application/json; charset=latin1',
    'text/plain; a=application/json',
    '',
  ])('%p is refused with 415', async (type) => {
    const { request } = serve([echo])
    // Bytes without a type are sent without a Content-Type at all.
    const init = type === '' ? { method: 'POST', body: bytes('{}') } : post('{}', { 'Content-Type': type })
    expect(await refusal(await request('/echo', init))).toEqual([415, 'Content-Type must be application/json'])
  })

  test.each([
    ['{"a":', 'The body is not valid JSON'],
    ['[1]', 'The body must be a JSON object'],
    [Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), 'The body is not valid UTF-8'],
    ['[['.repeat(40), 'The body is nested deeper than 64 levels'],
    ['', 'The body is not valid JSON'],
  ])('%p: 400', async (body, message) => {
    const { request } = serve([echo])
    expect(await refusal(await request('/echo', post(body)))).toEqual([400, message])
    expect(await refusal(await request('/echo', post(chunked(body))))).toEqual([400, message])
  })

  test('are parsed regardless of chunk boundaries', async () => {
    const { request } = serve([echo])
    const content = bytes('{"a":"🎈"}')
    expect(await (await request('/echo', post(chunked(content.subarray(0, 8), content.subarray(8))))).json()).toEqual({
      a: '🎈',
    })
  })

  test('the limit is exact, in bytes', async () => {
    const { request } = serve([echo])
    const exact = `{"a":"${'é'.repeat(46)}"}`
    expect(bytes(exact)).toHaveLength(100)
    expect((await request('/echo', post(exact))).status).toBe(200)
    expect((await request('/echo', post(chunked(exact)))).status).toBe(200)
    for (const body of [`${exact} `, chunked(exact, ' ')])
      expect(await refusal(await request('/echo', post(body)))).toEqual([413, 'The body is larger than 100 bytes'])
  })

  test('a declared length over the limit is refused before the body is read', async () => {
    const { server } = serve([echo])
    const connection = connectRaw(server)
    connection.write(head('Content-Length: 99999999999'))
    await connection.until('"payload-too-large"')
    connection.socket.destroy()
  })

  test('the runtime refuses bodies beyond the limit of the listener, declared or not', async () => {
    const { server } = serve([echo], { bodyBytesMax: 1000 })
    for (const sent of ['Content-Length: 1001', `Transfer-Encoding: chunked\r\n\r\n3e9\r\n${' '.repeat(1001)}`]) {
      const connection = connectRaw(server)
      connection.write(head(sent))
      await connection.until('HTTP/1.1 413 ')
      connection.socket.destroy()
    }
  })

  test('an endless body is refused while it is read', async () => {
    const { server } = serve([echo])
    const connection = connectRaw(server)
    connection.write(head('Transfer-Encoding: chunked'))
    for (let n = 0; n < 3; n++) connection.write(`32\r\n${' '.repeat(50)}\r\n`)
    await connection.until('"payload-too-large"')
    connection.socket.destroy()
  })

  test('a client that disconnects is not a server error', async () => {
    const { server, request, logged, metrics } = serve([echo])
    const connection = connectRaw(server)
    connection.write(`${head('Content-Length: 50')}{"a":`)
    await request('/echo', post('{}'))
    connection.socket.destroy()
    await connection.closed
    while (metrics.inFlight > 0) await request('/echo', post('{}'))
    expect(logged().every(({ level }) => level === 'info')).toBe(true)
  })

  test('the body of an unauthorized request is not read', async () => {
    const { request } = serve([{ ...echo, credentials: 'user' }])
    const response = await request('/echo', post('not json', { 'Content-Type': 'text/plain' }))
    expect(await refusal(response)).toEqual([401, 'Authentication required'])
  })
})
