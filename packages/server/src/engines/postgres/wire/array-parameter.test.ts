/** Elements of an array arrive as the same values do one by one. */
import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { silentLog } from '../../../base/log.ts'
import { type SqlScalar, type SqlText, sql } from '../../sql/sql-text.ts'
import { sqlStateOf } from '../errors.ts'
import { openPostgres } from '../postgres.ts'
import { toArrayParameter } from './array-parameter.ts'

test('an array has elements of one type', () => {
  expect(() => toArrayParameter(['a', 1])).toThrow(TypeError)
  expect(() => toArrayParameter([{} as string])).toThrow(TypeError)
})

const url = process.env.PLINTH_TEST_DATABASE_URL

if (url !== undefined) {
  const engine = openPostgres({ url, log: silentLog })
  const database = engine.database({ namespace: 'public', instanceId: null })
  afterAll(() => engine.close())

  async function inArray(cast: SqlText, values: readonly SqlScalar[]): Promise<SqlScalar[]> {
    const rows = await database.all<{ value: SqlScalar }>(sql`SELECT unnest(${values}::${cast}[]) AS value`)
    return rows.map(({ value }) => value)
  }

  const alone = (cast: SqlText, values: readonly SqlScalar[]): Promise<SqlScalar[]> =>
    Promise.all(
      values.map(async (value) => {
        const [row] = await database.all<{ value: SqlScalar }>(sql`SELECT ${value}::${cast} AS value`)
        return row?.value ?? null
      }),
    )

  const withoutNul = (text: string): string => text.replaceAll('\0', '')
  const units = fc.constantFrom(...'"\\{},\n\t\x01\x7fé€🙂', 'NULL', '\ud800', '\udc00')
  const elements: readonly (readonly [SqlText, fc.Arbitrary<SqlScalar>])[] = [
    [sql`text`, fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: units })).map(withoutNul)],
    [sql`float8`, fc.oneof(fc.double(), fc.maxSafeInteger())],
    [sql`boolean`, fc.boolean()],
  ]

  for (const [cast, element] of elements)
    test(`an array of ${cast.text}`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.option(element), { maxLength: 20 }), async (values) => {
          expect(await inArray(cast, values)).toEqual(await alone(cast, values))
        }),
      )
    })

  test('a text of millions of characters', async () => {
    const texts = ['🙂'.repeat(1_000_000), 'end']
    expect(await inArray(sql`text`, texts)).toEqual(texts)
  })

  test('a NUL is refused as in a single text', async () => {
    const refused = (query: SqlText) => database.all(query).then(() => null, sqlStateOf)
    const single = await refused(sql`SELECT ${'a\0b'}::text`)
    expect(single).not.toBeNull()
    expect(await refused(sql`SELECT ${['c', 'a\0b']}::text[]`)).toEqual(single)
    expect(await inArray(sql`text`, ['after'])).toEqual(['after'])
  })
}
