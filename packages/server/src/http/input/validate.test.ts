import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { ApiError } from '../../errors.ts'
import { flagParam, integerParam, listParam, textParam } from './query-schema.ts'
import { createQueryReader, validate } from './validate.ts'

function refusal(schema: z.ZodType, input: unknown) {
  try {
    validate(schema, input)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('accepted')
}
const codes = (schema: z.ZodType, input: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(refusal(schema, input).data ?? {}).map(([name, { code }]) => [name, code]))

describe('validate', () => {
  const schema = z.strictObject({
    name: z
      .string()
      .min(2)
      .max(4)
      .regex(/^[a-z]+$/),
    count: z.int().min(0).max(10).optional(),
    action: z.enum(['update', 'delete']),
    items: z
      .array(z.strictObject({ id: z.string() }))
      .max(2)
      .optional(),
  })

  test('returns the parsed input', () => {
    expect(validate(schema, { name: 'abc', action: 'update' })).toEqual({ name: 'abc', action: 'update' })
  })

  test.each([
    [{}, { name: 'required', action: 'required' }],
    [{ name: 1, action: 'update' }, { name: 'type' }],
    [{ name: null, action: 'update' }, { name: 'type' }],
    [{ name: 'a', action: 'update' }, { name: 'min' }],
    [{ name: 'abcde', action: 'update' }, { name: 'max' }],
    [{ name: 'AB', action: 'update' }, { name: 'pattern' }],
    [{ name: 'ab', action: 'drop' }, { action: 'enum' }],
    [{ name: 'ab', action: 'update', count: 1.5 }, { count: 'type' }],
    [{ name: 'ab', action: 'update', count: -1 }, { count: 'min' }],
    [{ name: 'ab', action: 'update', count: 11 }, { count: 'max' }],
    [
      { name: 'ab', action: 'update', extra: 1, more: 2 },
      { extra: 'unknown', more: 'unknown' },
    ],
    [
      { name: 'ab', action: 'update', items: [{ id: 'a' }, { id: 1, x: 1 }] },
      { 'items[1].id': 'type', 'items[1].x': 'unknown' },
    ],
    [{ name: 'ab', action: 'update', items: [{}, {}, {}] }, { items: 'max' }],
  ])('%j', (input, expected) => {
    expect(codes(schema, input)).toEqual(expected as unknown as Record<string, string>)
  })

  test('a field called __proto__ is named, and nothing is polluted', () => {
    const input = JSON.parse('{"name":"ab","action":"update","__proto__":{"x":1}}') as unknown
    expect(codes(schema, input)).toEqual(JSON.parse('{"__proto__":"unknown"}') as Record<string, string>)
  })

  test('error messages are those of the API', () => {
    const { status, message, data } = refusal(schema, { name: 'a', action: 'x', count: 'one' })
    expect([status, message]).toEqual([400, 'name: must have at least 2 characters'])
    expect(data).toEqual({
      name: { code: 'min', message: 'must have at least 2 characters' },
      action: { code: 'enum', message: 'must be one of update, delete' },
      count: { code: 'type', message: 'must be a number' },
    })
    expect(refusal(schema, {}).message).toBe('name: is required')
  })

  test('an invalid union reports the issues of the closest variant', () => {
    const either = z.object({ value: z.union([z.string(), z.strictObject({ id: z.string() })]) })
    expect(codes(either, { value: { id: 1 } })).toEqual({ 'value.id': 'type' })
    expect(codes(either, { value: 1 })).toEqual({ value: 'type' })
    expect(codes(either, {})).toEqual({ value: 'required' })
  })

  test('custom checks may set a code; an issue of the complete input has no field', () => {
    const checked = z.object({ from: z.number() }).superRefine(({ from }, context) => {
      if (from > 1) context.addIssue({ code: 'custom', path: ['from'], message: 'is late', params: { code: 'max' } })
      if (from < 0) context.addIssue({ code: 'custom', message: 'Nothing fits' })
    })
    expect(refusal(checked, { from: 2 }).data).toEqual({ from: { code: 'max', message: 'is late' } })
    expect(refusal(checked, { from: -1 }).body()).toEqual({ code: 400, slug: 'bad-request', message: 'Nothing fits' })
  })

  test('the size of an error is limited for any input', () => {
    const input = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`f${index}`, 1]))
    expect(Object.keys(codes(z.strictObject({}), input))).toHaveLength(100)
  })
})

describe('a query reader', () => {
  const shape = { text: textParam(''), list: listParam(''), limit: integerParam({ max: 10 }), flag: flagParam('') }
  const optional = z.object(shape)
  const required = z.object({ ...shape, key: z.string() })
  const checked = z.object(shape).refine(({ text, list }) => text === undefined || list === undefined, 'not both')
  const queries = [
    '',
    'text=a',
    'list=["a","b"]&flag=1',
    'limit=3&key=x',
    'limit=x&flag=2',
    'text=a&list=b',
    'key=',
    '?=',
  ]

  test('reads what the schema reads of all parameters', () => {
    for (const schema of [optional, required, checked])
      for (const query of queries) {
        const parameters = Object.fromEntries(new URLSearchParams(query))
        const isKnown = Object.keys(parameters).every((name) => name in schema.shape)
        const read = (reading: () => unknown): unknown => {
          try {
            return reading()
          } catch (error) {
            return (error as ApiError).body()
          }
        }
        const result = read(() => createQueryReader(schema as z.ZodType)(query))
        if (isKnown) expect(result).toEqual(read(() => validate(schema as z.ZodType, parameters)))
        else expect(result).toMatchObject({ code: 400 })
      }
  })

  test('no request changes what another reads', () => {
    const read = createQueryReader(optional)
    expect(read('limit=3')).toMatchObject({ limit: 3 })
    expect(read('text=a').limit).toBeUndefined()
  })
})
