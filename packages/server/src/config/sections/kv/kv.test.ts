import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from '../../validate.ts'

const parse = (cache: object) => parseConfig({ kv: { cache } }, { mode: 'release', rootKey: '' }).config.kv.get('cache')

test('what is left out is as the contract says, and everything can be said', () => {
  expect(parse({})).toEqual({ name: 'cache', writeIntervalMs: 1000, valueBytesMax: 1_048_576 })
  expect(parse({ writeInterval: 0, maxValueSize: '4MB' })).toMatchObject({
    writeIntervalMs: 0,
    valueBytesMax: 4_194_304,
  })
  expect(parse({ writeInterval: 60_000, maxValueSize: 1 })).toMatchObject({ writeIntervalMs: 60_000, valueBytesMax: 1 })
})

test.each<[cache: unknown, option: string, message: string]>([
  [5, '', 'must be an object, not a number'],
  [{ writeIntervall: 5 }, '.writeIntervall', 'is not known here. Did you mean "writeInterval"?'],
  [{ writeInterval: -1 }, '.writeInterval', 'must be at least 0'],
  [{ writeInterval: 60_001 }, '.writeInterval', 'must be at most 60000'],
  [{ writeInterval: 0.5 }, '.writeInterval', 'must be a whole number, not 0.5'],
  [{ writeInterval: '1s' }, '.writeInterval', 'must be a number, not a string'],
  [{ maxValueSize: 0 }, '.maxValueSize', 'must be at least 1'],
  [{ maxValueSize: '5mb' }, '.maxValueSize', 'must be at most 4mb'],
  [{ maxValueSize: 'big' }, '.maxValueSize', 'must be a size such as "1mb", or a number of bytes'],
])('%j', (cache, option, message) => {
  expect(findMistakes({ kv: { cache } }, '')).toEqual([`kv.cache${option}: ${message}`])
})

test.each(['_cache', 'constructor', 'a b', '1st', 'x'.repeat(49)])('%j is no name of a namespace', (name) => {
  expect(findMistakes({ kv: { [name]: {} } }, '')).toHaveLength(1)
})
