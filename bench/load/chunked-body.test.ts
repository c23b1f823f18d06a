import { expect, test } from 'bun:test'
import { ChunkedBody } from './chunked-body.ts'

const encoded = Buffer.from('5\r\nhello\r\n1\r\n \r\n10;name=value\r\n0123456789abcdef\r\n0\r\n\r\n')

test('a body is complete with its last byte, however it arrives', () => {
  for (let size = 1; size <= encoded.length; size++) {
    const body = new ChunkedBody(true)
    for (let at = 0; at < encoded.length; at += size) {
      const isLast = at + size >= encoded.length
      expect(body.push(encoded.subarray(at, at + size))).toBe(isLast)
    }
    expect(body.data().toString()).toBe('hello 0123456789abcdef')
    expect(body.bytes).toBe(22)
  }
})

test('bytes that are no chunk are an error', () => {
  expect(() => new ChunkedBody(false).push(Buffer.alloc(100, 'x'))).toThrow('without a size')
})
