import { expect, test } from 'bun:test'
import { z } from '../../base/schemas/z.ts'
import { ApiError } from '../../errors.ts'
import { endpoint } from '../endpoint.ts'
import {
  booleanParam,
  cursorParam,
  integerParam,
  limitParam,
  requiredIntegerParam,
  wordParam,
  wordParamOr,
} from '../input/query-schema.ts'
import { createQueryReader } from '../input/validate.ts'
import { buildOpenApi } from '../pages/openapi.ts'
import { json } from '../replies/reply.ts'

const schema = z.object({
  limit: limitParam({ default: 20, max: 100 }),
  strict: limitParam({ default: 50, max: 100, clamps: false }),
  offset: integerParam({ min: 0 }),
  upsert: booleanParam('Update or insert'),
  fit: wordParam(['cover', 'contain']),
  unit: wordParamOr(['hour', 'day'], 'hour'),
  cursor: cursorParam(),
})
const read = createQueryReader(schema)

function fieldOf(query: string): unknown {
  try {
    return read(query)
  } catch (error) {
    return error instanceof ApiError ? error.data : error
  }
}

test('absent parameters have their defaults or are undefined', () => {
  expect<unknown>(read('')).toEqual({ limit: 20, strict: 50, upsert: false, unit: 'hour' })
})

test('values are parsed by type', () => {
  expect(read('limit=7&strict=100&offset=0&upsert=true&fit=contain&unit=day&cursor=abc')).toEqual({
    limit: 7,
    strict: 100,
    offset: 0,
    upsert: true,
    fit: 'contain',
    unit: 'day',
    cursor: 'abc',
  })
})

test('a limit above the maximum is clamped, or refused where the schema says so', () => {
  expect(read('limit=101')).toMatchObject({ limit: 100 })
  expect(fieldOf('strict=101')).toEqual({ strict: { code: 'max', message: 'must be a whole number from 1 to 100' } })
})

test.each(['', 'x', '1.5', '1e3', ' 1', '0x1', '9'.repeat(17), '9'.repeat(16)])('%p is not a whole number', (text) => {
  const message = 'must be a whole number from 1 to 100'
  expect(fieldOf(`limit=${text}`)).toEqual({ limit: { code: 'type', message } })
})

test('a number below the minimum is refused with the bounds', () => {
  expect(fieldOf('limit=0')).toEqual({ limit: { code: 'min', message: 'must be a whole number from 1 to 100' } })
  expect(fieldOf('offset=-1')).toEqual({ offset: { code: 'min', message: 'must be a whole number of at least 0' } })
})

test('values outside an enumeration are refused', () => {
  expect(fieldOf('upsert=yes')).toEqual({ upsert: { code: 'enum', message: 'must be true or false' } })
  expect(fieldOf('fit=')).toEqual({ fit: { code: 'enum', message: 'must be one of cover, contain' } })
  expect(fieldOf('unit=week')).toEqual({ unit: { code: 'enum', message: 'must be one of hour, day' } })
})

test('a missing required number is refused', () => {
  const part = createQueryReader(z.object({ part: requiredIntegerParam({ max: 10 }) }))
  expect(part('part=10')).toEqual({ part: 10 })
  expect(() => part('')).toThrow('part: is required')
})

test('OpenAPI contains type, bounds and default', () => {
  const endpoints = [
    endpoint({
      name: 'things.list',
      method: 'GET',
      paths: ['/api/things'],
      tag: 'Things',
      summary: 'List things',
      credentials: 'public',
      rateLimit: null,
      query: schema,
      replies: {},
      handle: () => json({}),
    }),
  ]
  const described = buildOpenApi({ endpoints, sockets: [], version: '1', tables: { tables: {} } }) as {
    paths: Record<string, { get: { parameters: { name: string; required: boolean; schema: unknown }[] } }>
  }
  const parameters = described.paths['/api/things']?.get.parameters ?? []
  expect(parameters.some(({ required }) => required)).toBe(false)
  expect(Object.fromEntries(parameters.map((one) => [one.name, one.schema]))).toEqual({
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    strict: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
    offset: { type: 'integer', minimum: 0 },
    upsert: { type: 'boolean', default: false },
    fit: { type: 'string', enum: ['cover', 'contain'] },
    unit: { type: 'string', enum: ['hour', 'day'], default: 'hour' },
    cursor: { type: 'string' },
  })
})
