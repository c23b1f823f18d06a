/**
 * Search compared with an independent implementation: the same rows are found, and a highlight is the escaped text with
 * only tags added.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { title: { type: 'string' }, body: { type: 'text' } },
          search: ['title', 'body'],
          access: open,
        },
      },
    },
  },
} as const

/** Words with common prefixes, in several scripts; none folds to another. */
const words = [
  'a',
  'ab',
  'abc',
  'b',
  'ba',
  'Zebra',
  'zeb',
  'straße',
  'мир',
  'мирный',
  '東京',
  'x1',
  'x12',
  '2026',
  'or',
  'near',
  'not',
]
const separators = [' ', '  ', ', ', '. ', '-', ' (', ') ', ' <b>', '&', '"', "' ", '\n', ' * ', ':', ' /']

const text = fc
  .array(fc.tuple(fc.constantFrom(...words), fc.constantFrom(...separators)), { maxLength: 8 })
  .map((parts) => parts.flat().join(''))
const row = fc.record({
  title: fc.option(text, { freq: 4 }),
  body: fc.option(text, { freq: 4 }),
})

const wordsOf = (...texts: readonly (string | null)[]): string[] =>
  texts.flatMap((one) => (one ?? '').toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])

/** Every word occurs; the last one may be a prefix. */
function isFound(asked: readonly string[], texts: readonly (string | null)[]): boolean {
  const present = wordsOf(...texts)
  return asked.every((word, at) =>
    present.some((one) => (at === asked.length - 1 ? one.startsWith(word) : one === word)),
  )
}

const escaped = (one: string): string =>
  one
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
const normal = (html: string): string =>
  html.replaceAll(/&#x22;|&#34;/gi, '&quot;').replaceAll(/&#x27;|&#039;|&apos;/gi, '&#39;')

describeServer('random searches', { config }, (server) => {
  test('[DB-SEARCH-3, DB-SEARCH-5, DB-SEARCH-6, DB-SEARCH-8] rows with all words are found and highlighted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 1, maxLength: 12 }),
        fc.array(fc.array(fc.constantFrom(...words, 'z', 'м', 'ze', 'nowhere'), { minLength: 1, maxLength: 3 }), {
          minLength: 1,
          maxLength: 8,
        }),
        async (rows, searches) => {
          await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
          const inserts = rows.map((one, n) => ({ id: `r${n}`, ...one }))
          expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
          for (const search of searches) {
            const q = search.join(' ')
            const expected = inserts.filter((one) => isFound(wordsOf(q), [one.title, one.body])).map(({ id }) => id)
            const { status, body } = await server.anonymous.get(
              `${base}/search${query({ q, highlightPre: '⟦', highlightPost: '⟧' })}`,
            )
            const ids = body.items.map(({ id }: { id: string }) => id).sort()
            expect([q, status, ids]).toEqual([q, 200, expected.sort()])
            expect(body.total).toBe(expected.length)
            for (const item of body.items) {
              const marked = Object.entries(item.highlights as Record<string, string>)
              expect(marked.some(([, html]) => html.includes('⟦'))).toBe(true)
              for (const [name, html] of marked) {
                expect(normal(html.replaceAll(/[⟦⟧]/g, ''))).toBe(escaped(item[name]))
                // Tags come in pairs and are never nested.
                expect(html.replaceAll(/[^⟦⟧]/g, '')).toMatch(/^(?:⟦⟧)*$/)
              }
            }
          }
        },
      ),
      { numRuns: 40 },
    )
  })
})
