import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from '../../validate.ts'

const parse = (main: object) => parseConfig({ sql: { main } }, { mode: 'release', rootKey: '' }).config.sql.get('main')

test('what is left out is the usual', () => {
  expect(parse({})).toEqual({ timeoutMs: 30_000, rowsMax: 10_000, bytesMax: 1024 ** 3 })
})

test('everything can be said', () => {
  expect(parse({ timeout: '4m', maxRows: 100_000, maxSize: '20gb' })).toEqual({
    timeoutMs: 240_000,
    rowsMax: 100_000,
    bytesMax: 20 * 1024 ** 3,
  })
  expect(parse({ maxSize: 1_048_576 })?.bytesMax).toBe(1_048_576)
})

test('mistakes are found, each with its place', () => {
  const mistakes = (sql: unknown): readonly string[] => findMistakes({ sql }, '')
  expect(mistakes({ main: { timeout: '5m' } })).toEqual(['sql.main.timeout: must be at most 240 seconds'])
  expect(mistakes({ main: { timeout: 30 } })).toEqual(['sql.main.timeout: must be text, not a number'])
  expect(mistakes({ main: { maxRows: 0 } })).toEqual(['sql.main.maxRows: must be at least 1'])
  expect(mistakes({ main: { maxRows: 100_001 } })).toEqual(['sql.main.maxRows: must be at most 100000'])
  expect(mistakes({ main: { maxSize: '1kb' } })).toEqual(['sql.main.maxSize: must be at least 1mb'])
  expect(mistakes({ main: { maxrows: 1 } })).toEqual(['sql.main.maxrows: is not known here. Did you mean "maxRows"?'])
  expect(mistakes({ _main: {} })).toEqual(['sql._main: must not start with "_", which marks the platform\'s own names'])
  expect(mistakes({ 'a/b': {} })).toEqual(['sql["a/b"]: must be a letter, then letters, digits and "_"'])
  expect(mistakes({ [`a${'b'.repeat(40)}`]: {} })).toEqual([`sql.a${'b'.repeat(40)}: must have at most 40 characters`])
  expect(mistakes({ main: {}, Main: {} })).toEqual(['sql.Main: differs from "main" only in upper and lower case'])
  expect(mistakes([])).toEqual(['sql: must be an object, not a list'])
})
