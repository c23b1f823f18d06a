import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { MessageReader, messageCode, readColumns, readError, readTag } from './message-reader.ts'
import { MessageWriter, toParameter } from './message-writer.ts'
import { createRowDecoder } from './row-decoder.ts'

function message(code: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head[0] = code
  head.writeInt32BE(4 + content.length, 1)
  return Buffer.concat([head, content])
}

test('messages are the same however their bytes arrive', () => {
  const messages = fc.array(fc.tuple(fc.integer({ min: 1, max: 255 }), fc.uint8Array({ maxLength: 40 })))
  const cuts = fc.array(fc.nat({ max: 60 }))
  fc.assert(
    fc.property(messages, cuts, (sent, sizes) => {
      const bytes = Buffer.concat(sent.map(([code, content]) => message(code, content)))
      const found: [number, Uint8Array][] = []
      const reader = new MessageReader((code, all, start, end) =>
        found.push([code, new Uint8Array(all.subarray(start, end))]),
      )
      let at = 0
      for (const size of sizes) {
        reader.read(bytes.subarray(at, at + size))
        at = Math.min(bytes.length, at + size)
      }
      reader.read(bytes.subarray(at))
      expect(found).toEqual(sent.map(([code, content]) => [code, new Uint8Array(content)]))
    }),
  )
})

test('rows are decoded by the types of their columns', () => {
  const columns: [string, number, string | null, unknown][] = [
    ['text', 25, 'größer 😀', 'größer 😀'],
    ['number', 701, '-1.5e+21', -1.5e21],
    ['count', 20, '9007199254740993', '9007199254740993'],
    ['yes', 16, 't', true],
    ['no', 16, 'f', false],
    ['json', 114, '{"a": 1}', '{"a": 1}'],
    ['none', 25, null, null],
    ['list', 1009, '{a,"b c",NULL}', ['a', 'b c', null]],
  ]
  const count = Buffer.alloc(2)
  count.writeInt16BE(columns.length)
  const described = columns.map(([name, type]) => {
    const description = Buffer.alloc(18)
    description.writeUInt32BE(type, 6)
    return Buffer.concat([Buffer.from(`${name}\0`), description])
  })
  const decode = createRowDecoder(readColumns(Buffer.concat([count, ...described]), 0))
  const values = columns.map(([, , value]) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(value === null ? -1 : Buffer.byteLength(value))
    return Buffer.concat([length, Buffer.from(value ?? '')])
  })
  expect(decode(Buffer.concat([count, ...values]), 0)).toEqual(
    Object.fromEntries(columns.map(([name, , , value]) => [name, value])),
  )
})

test('errors and command tags', () => {
  const fields = Buffer.from('SERROR\0C23505\0Mduplicate key\0DKey (slug)=(a) already exists.\0\0')
  expect(readError(fields, 0, fields.length)).toMatchObject({
    code: '23505',
    message: 'duplicate key',
    detail: 'Key (slug)=(a) already exists.',
  })
  const tags = {
    'INSERT 0 3': ['INSERT', 3],
    BEGIN: ['BEGIN', 0],
    'CREATE TABLE': ['CREATE', 0],
    'UPDATE 0': ['UPDATE', 0],
  }
  for (const [tag, [command, changed]] of Object.entries(tags)) {
    const bytes = Buffer.from(`${tag}\0`)
    expect(readTag(bytes, 0, bytes.length)).toEqual({ command, changed } as { command: string; changed: number })
  }
})

test('parameters are text, bytes, arrays or null; anything else is refused', () => {
  expect([1.5, true, 'a', null, undefined].map(toParameter)).toEqual(['1.5', 'true', 'a', null, null])
  expect(toParameter([null, null])).toBe('{NULL,NULL}')
  const bytes = new Uint8Array([0, 255])
  expect(toParameter(bytes)).toBe(bytes)
  expect(() => toParameter({})).toThrow(TypeError)
})

test('statements of any size are written whole, and large buffers are not kept', () => {
  const codes: number[] = []
  const reader = new MessageReader((code) => codes.push(code))
  const writer = new MessageWriter()
  for (const text of ['ä'.repeat(10), 'x'.repeat(1_000_000), '']) {
    writer.prepare('s1', 'SELECT $1')
    writer.execute('s1', [text, null, new Uint8Array(70_000)])
    writer.sync()
    reader.read(writer.take())
  }
  const one = [...'PDBES'].map((letter) => letter.charCodeAt(0))
  expect(codes).toEqual([...one, ...one, ...one])
  expect(messageCode.dataRow).toBe(0x44)
})
