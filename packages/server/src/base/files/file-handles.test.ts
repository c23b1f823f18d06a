import { expect, test } from 'bun:test'
import { isOutOfHandles, parseLimit, readHandleLimit } from './file-handles.ts'

const failure = (code: string, cause?: unknown): Error => Object.assign(new Error('failed', { cause }), { code })

test('the limit is what the system says', () => {
  expect(parseLimit('Max open files            1024                 524288               files')).toBe(1024)
  expect(parseLimit('Max open files unlimited\n')).toBe(Number.POSITIVE_INFINITY)
  expect(parseLimit('')).toBeNull()
  expect(readHandleLimit()).toBeGreaterThan(0)
})

test('a lack of handles is recognized, also as a cause, and nothing else is', () => {
  for (const code of ['EMFILE', 'ENFILE', 'SQLITE_CANTOPEN', 'SQLITE_CANTOPEN_FULLPATH'])
    expect(isOutOfHandles(failure('X', failure(code)))).toBe(true)
  expect(isOutOfHandles(failure('ENOENT'))).toBe(false)
  expect(isOutOfHandles('EMFILE')).toBe(false)
})
