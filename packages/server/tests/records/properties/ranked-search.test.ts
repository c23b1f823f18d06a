/**
 * Searches with a ranking compared with a naive implementation: the same rows in the same order on every engine, for
 * every combination of options, under a rule that hides some rows from the caller.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { query } from '../../harness/client.ts'
import { type OracleOptions, rankedIds, tokensOf } from '../../harness/records/ranked-oracle.ts'
import { describeServer } from '../../harness/server.ts'

const variants: readonly OracleOptions[] = [true, false].flatMap((typos) =>
  [true, false].flatMap((prefix) =>
    [true, false].map((substring, at) => ({
      weights: at === 0 ? { title: 4, body: 1, note: 1 } : { title: 1, body: 9, note: 3 },
      typos,
      prefix,
      substring,
    })),
  ),
)
const nameOf = (at: number): string => `items${at}`
const text = { type: 'text' } as const

const config = {
  databases: {
    shared: {
      tables: Object.fromEntries(
        variants.map(({ weights, ...searchOptions }, at) => [
          nameOf(at),
          {
            schema: { title: text, body: text, note: text, open: { type: 'boolean' } },
            search: Object.entries(weights).map(([field, weight]) => ({ field, weight })),
            searchOptions,
            access: { read: () => ({ open: true }) },
          },
        ]),
      ),
    },
  },
} as const

const words = [
  ...['paris', 'Pariss', 'prais', 'par', 'parisian', 'comparison', 'heidelberg', 'Heidleberg', 'heidlebreg', 'heide'],
  ...['berg', 'Zürich', 'zurich', 'zuerich', '2026', '2027', 'x12345', 'naïve', 'naive', 'niave', 'a', 'ab', 'abc'],
  ...[
    '東京',
    '東京都',
    '京都',
    '東',
    'タワー',
    '東京タワーtokyo',
    'が',
    'か',
    '한국어',
    '한국',
    'ไทย',
    'tokyo',
    'tokio',
  ],
  ...[
    'שלום',
    'שלומ',
    'مرحبا',
    'мирный',
    'мирнйы',
    '𝒳𝒴𝒵𝒜',
    '𝒳𝒵𝒴𝒜',
    '👩‍👩‍👧',
    'e\u0301cole',
    'ecole',
    'ﬁnale',
    'İstanbul',
    'straße',
  ],
]
const letter = fc.constantFrom('a', 'b', 'c', 'p', 'r', 'i', 's', '東', '京', 'か', 'é', '1')
const word = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...words) },
  { weight: 2, arbitrary: fc.array(letter, { minLength: 1, maxLength: 12 }).map((letters) => letters.join('')) },
)
const sentence = fc.array(word, { maxLength: 5 }).map((some) => some.join(' '))
const row = fc.record({
  title: fc.option(sentence, { freq: 5 }),
  body: fc.option(sentence, { freq: 5 }),
  note: fc.option(sentence, { freq: 2 }),
  open: fc.boolean(),
})
const searched = fc
  .oneof(
    { weight: 3, arbitrary: fc.array(word, { minLength: 1, maxLength: 3 }).map((some) => some.join(' ')) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('pa', 'pari', 'heidelbreg', 'zürihc', 'berg', '京', '都', 'ワ', '国', '한'),
    },
  )
  .filter((q) => tokensOf(q).length <= 20)

describeServer('random searches with a ranking', { config }, (server) => {
  test('[DB-SEARCH-14, DB-SEARCH-15, DB-SEARCH-16, DB-SEARCH-17, DB-SEARCH-18] rows and their order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: variants.length - 1 }),
        fc.array(row, { minLength: 1, maxLength: 14 }),
        fc.array(row, { maxLength: 4 }),
        fc.array(searched, { minLength: 1, maxLength: 8 }),
        async (variant, rows, changes, searches) => {
          const path = `/api/db/shared/tables/${nameOf(variant)}`
          await server.service.post(`${path}/batch-by-filter`, { action: 'delete' })
          const inserts = rows.map((one, n) => ({ id: `r${n}`, ...one }))
          expect((await server.service.post(`${path}/batch`, { inserts })).status).toBe(200)
          // The index follows changes and deletions.
          const changed = changes.slice(0, rows.length - 1)
          const updates = changed.map((data, n) => ({ id: `r${n}`, data }))
          const batch = { updates, deletes: [`r${rows.length - 1}`] }
          expect((await server.service.post(`${path}/batch`, batch)).status).toBe(200)
          const stored = inserts.map((one, n) => ({ ...one, ...changed[n] })).slice(0, -1)
          const visible = stored.filter(({ open }) => open)
          for (const q of searches) {
            const options = variants[variant] as OracleOptions
            const expected = rankedIds(visible as never, q, options)
            const { status, body } = await server.anonymous.get(
              `${path}/search${query({ q, highlightPre: '⟦', highlightPost: '⟧' })}`,
            )
            expect([q, status, body.items?.map(({ id }: { id: string }) => id)]).toEqual([q, 200, expected])
            expect(body.total).toBe(expected.length)
            for (const { highlights } of body.items)
              expect(Object.values(highlights).every((html) => /^[^⟦⟧]*(?:⟦[^⟦⟧]+⟧[^⟦⟧]*)+$/.test(String(html)))).toBe(
                true,
              )
            const facets = await server.anonymous.get(
              `${path}/aggregate${query({ q, measures: { n: 'count' }, group: ['open'] })}`,
            )
            expect(facets.body.groups).toEqual(expected.length === 0 ? [] : [{ open: true, n: expected.length }])
          }
        },
      ),
      { numRuns: 250 },
    )
  })
})
