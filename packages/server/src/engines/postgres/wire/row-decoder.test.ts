import { expect, test } from 'bun:test'
import pg from 'pg'
import { createRowDecoder } from './row-decoder.ts'

/** A row with one number, as the server sends it. */
function decodeNumber(text: string): unknown {
  const head = Buffer.alloc(6)
  head.writeUInt16BE(1, 0)
  head.writeInt32BE(text.length, 2)
  const decode = createRowDecoder([{ name: 'n', type: pg.types.builtins.FLOAT8 }])
  return decode(Buffer.concat([head, Buffer.from(text)]), 0).n
}

test.each([
  ...['0', '7', '-0', '-1', '42', '0.1', '-12.5', '1e+20', '1.5e-7', '999999999999999', '9007199254740993'],
  ...['1234567890123456789012', 'NaN', 'Infinity', '-Infinity'],
])('the number %s is decoded as JavaScript reads it', (text) => {
  expect(decodeNumber(text)).toBe(Number(text))
})
