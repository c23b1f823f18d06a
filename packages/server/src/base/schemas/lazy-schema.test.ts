/** Lazy schemas against those of the library: what they accept, how they are described, and when they are built. */
import { expect, test } from 'bun:test'
import { z as library } from 'zod'
import { builtSchema, lazily } from './lazy-schema.ts'
import { z } from './z.ts'

/** The same declaration, made with the library and with lazy schemas. */
const declare = (of: typeof library) => {
  const name = of.string().trim().min(1).max(5).meta({ description: 'A name' })
  const base = of.object({ name, tags: of.array(of.enum(['a', 'b'])).default([]) })
  const even = of.int().refine((value) => value % 2 === 0, { message: 'must be even', params: { code: 'type' } })
  return of.discriminatedUnion('kind', [
    base.extend({ kind: of.literal('one'), count: even.optional(), note: of.string().nullable() }),
    of.strictObject({
      kind: of.literal('two'),
      pair: of.tuple([of.number(), of.boolean()]),
      size: of.url().or(of.null()),
    }),
    base.pick({ name: true }).extend({ kind: of.literal('three'), rest: of.record(of.string(), of.unknown()) }),
  ])
}

test.each([
  { kind: 'one', name: ' ann ', count: 2, note: null },
  { kind: 'one', name: '', count: 3, tags: ['c'] },
  { kind: 'two', pair: [1, true], size: null },
  { kind: 'two', pair: [1], size: 'no', more: 1 },
  { kind: 'three', name: 'bob', rest: { a: 1 } },
  { kind: 'four' },
  null,
])('a lazy schema accepts and refuses the same as the schema of the library: %j', (input) => {
  expect(declare(z).safeParse(input)).toEqual(declare(library).safeParse(input))
})

test('a lazy schema is described the same, once it is built', () => {
  const lazy = declare(z)
  expect(library.toJSONSchema(builtSchema(lazy))).toEqual(library.toJSONSchema(declare(library)))
  expect(builtSchema(lazy)).toBeInstanceOf(library.ZodDiscriminatedUnion)
  expect(z.object({}) instanceof library.ZodObject).toBeTrue()
  expect(Object.keys(z.object({ a: z.string() }).shape)).toEqual(['a'])
  expect(z.string().meta({ description: 'text' }).meta()).toEqual({ description: 'text' })
})

test('a lazy schema is built at its first use, and once', () => {
  let count = 0
  const create = lazily((of: typeof library.string) => {
    count += 1
    return of()
  })
  const schema = create(library.string)
  const derived = schema.min(2).optional()
  expect(count).toBe(0)
  expect(derived.safeParse('a').success).toBeFalse()
  expect(derived.safeParse(undefined).success).toBeTrue()
  expect(schema.safeParse('').success).toBeTrue()
  expect(count).toBe(1)
  expect(builtSchema(derived)).toBe(builtSchema(derived))
})
