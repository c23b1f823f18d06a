import { expect, test } from 'bun:test'
import { typeOfSchema } from './schema-types.ts'

const types: readonly (readonly [schema: unknown, type: string])[] = [
  [true, 'unknown'],
  [{}, 'unknown'],
  [{ $ref: '#' }, 'unknown'],
  [{ const: 'a"b' }, '"a\\"b"'],
  [{ enum: ['a', 1, null] }, '("a") | (1) | (null)'],
  [{ type: 'integer' }, 'number'],
  [{ type: ['string', 'null'] }, '(string) | (null)'],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, '(string) | (number)'],
  [{ type: 'array', items: { enum: ['a', 'b'] } }, 'readonly (("a") | ("b"))[]'],
  [{ type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } }, 'readonly [string, ...(number)[]]'],
  [{ type: 'object' }, '{ readonly [name: string]: unknown }'],
  [{ type: 'object', additionalProperties: { type: 'number' } }, '{ readonly [name: string]: number }'],
  [
    { type: 'object', properties: { 'a-b': { type: 'string' }, c: { type: 'boolean' } }, required: ['c'] },
    '{ readonly "a-b"?: string; readonly "c": boolean }',
  ],
]

for (const [schema, type] of types)
  test(`[FN-20] ${JSON.stringify(schema)} is ${type}`, () => expect(typeOfSchema(schema)).toBe(type))
