import { expect, test } from 'bun:test'
import pg from 'pg'
import { EngineError, type EngineErrorKind } from '../sql/error.ts'
import { type FaultScope, faultOf, sqlStateOf } from './errors.ts'

/** An error as the library builds it from the server's message. */
const fromServer = (code: string, detail = ''): pg.DatabaseError =>
  Object.assign(new pg.DatabaseError('what the server says', 0, 'error'), { code, detail })

test.each<[string, EngineErrorKind, FaultScope]>([
  ['08006', 'unavailable', 'connection'],
  ['08P01', 'unavailable', 'connection'],
  ['23505', 'unique', 'statement'],
  ['25006', 'unavailable', 'writes'],
  ['25P03', 'unavailable', 'connection'],
  ['28000', 'unavailable', 'connection'],
  ['28P01', 'unavailable', 'connection'],
  ['3D000', 'unavailable', 'connection'],
  ['40001', 'conflict', 'statement'],
  ['40P01', 'conflict', 'statement'],
  ['40003', 'unavailable', 'statement'],
  ['53000', 'unavailable', 'statement'],
  ['53100', 'unavailable', 'writes'],
  ['53200', 'unavailable', 'health'],
  ['53300', 'unavailable', 'connection'],
  ['54000', 'oversized', 'statement'],
  ['55P03', 'busy', 'statement'],
  ['57014', 'unavailable', 'statement'],
  ['57P01', 'unavailable', 'connection'],
  ['57P02', 'unavailable', 'connection'],
  ['57P03', 'unavailable', 'connection'],
  ['57P04', 'unavailable', 'connection'],
  ['58030', 'unavailable', 'health'],
  ['58P01', 'unavailable', 'health'],
  ['F0000', 'unavailable', 'connection'],
  ['XX001', 'unavailable', 'health'],
  ['XX002', 'unavailable', 'health'],
])('%s is %s and reaches the %s', (code, kind, scope) => {
  const found = faultOf(fromServer(code))
  expect(found.error).toBeInstanceOf(EngineError)
  expect((found.error as EngineError).kind).toBe(kind)
  expect(found.scope).toBe(scope)
  expect(sqlStateOf(found.error)).toBe(code)
})

test.each(['42601', '42P01', '22P02', '23503', 'XX000', ''])('%s is an invalid statement', (code) => {
  const error = fromServer(code)
  expect(faultOf(error)).toEqual({ error, scope: 'statement' })
})

test('a unique violation names its columns, without the instance column', () => {
  const { error } = faultOf(fromServer('23505', 'Key (_instance, "first name")=(a, b) already exists.'))
  expect(error).toMatchObject({ kind: 'unique', columns: ['first name'] })
})

test('an error from neither the server nor the program is a connection failure', () => {
  expect(faultOf(new Error('read ECONNRESET'))).toMatchObject({ scope: 'connection', error: { kind: 'unavailable' } })
  const mistake = new TypeError('not a value')
  expect(faultOf(mistake)).toEqual({ error: mistake, scope: 'statement' })
  const mapped = new EngineError('busy', 'later')
  expect(faultOf(mapped)).toEqual({ error: mapped, scope: 'statement' })
})
