import { describe, expect, test } from 'bun:test'
import { parseByteSize } from './bytes.ts'

describe('parseByteSize', () => {
  test.each([
    ['1b', 1],
    ['512kb', 512 * 1024],
    ['5MB', 5 * 1024 ** 2],
    ['1.5 gb', 1.5 * 1024 ** 3],
    ['2tb', 2 * 1024 ** 4],
    ['0.001kb', 1],
  ])('%s is %d bytes', (text, bytes) => expect(parseByteSize(text)).toBe(bytes))

  test.each(['', '5', 'mb', '0b', '0.0001kb', '-1mb', '1e3kb', '1,5mb', '5 m b', '5mbs', '9999999tb', '5mb\n', '٥mb'])(
    '%j is none',
    (text) => expect(() => parseByteSize(text)).toThrow('must be a size such as'),
  )
})
