/**
 * GET {base}/search of tables with weights or options: the order of results, typos, parts of words, texts without
 * spaces, highlights, and nothing of the rows that the caller may not read.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Client, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const pathOf = (table: string): string => `/api/db/shared/tables/${table}`

type Auth = { id: string } | null
const schema = {
  title: { type: 'string' },
  body: { type: 'text' },
  ownerId: { type: 'string' },
  kind: { type: 'string' },
  secret: { type: 'string' },
} as const
const search = [{ field: 'title', weight: 4 }, 'body'] as const
const own = { read: (auth: Auth) => auth !== null && { ownerId: auth.id } }
const tolerant = { language: 'simple', typos: true, substring: true } as const

const config = {
  databases: {
    shared: {
      tables: {
        tolerant: { schema, search, searchOptions: tolerant, access: open },
        typos: { schema, search, searchOptions: { typos: true }, access: open },
        strict: { schema, search, searchOptions: { prefix: false }, access: open },
        weighted: { schema, search, access: open },
        long: { schema, search: ['title', 'body', { field: 'kind', weight: 2 }, 'ownerId'], access: open },
        mixed: { schema, search, searchOptions: tolerant, hidden: ['secret'], access: own },
        bare: { schema, search, searchOptions: tolerant, hidden: ['secret'], access: own },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema, search, searchOptions: tolerant, access: open } },
    },
  },
}

const rows = [
  { id: 'exact-title', title: 'Heidelberg' },
  { id: 'exact-long', title: 'Heidelberg Hauptbahnhof' },
  { id: 'exact-body', title: 'Castle', body: 'above heidelberg' },
  { id: 'prefix', title: 'Heidelberger' },
  { id: 'part', title: 'Neuheidelberg' },
  { id: 'one-typo', title: 'Heidelbreg' },
  { id: 'two-typos', title: 'Heidlebreg' },
  { id: 'three-typos', title: 'Hiedlebreg' },
  { id: 'other-initial', title: 'Keidelberg' },
  { id: 'short', title: 'cat cot' },
  { id: 'number', title: 'Order 10234567' },
  { id: 'tokyo', title: '東京都庁', body: '京都と東京' },
  { id: 'kyoto', title: '京都', body: 'Kyōto' },
  { id: 'seoul', title: '서울에서', body: 'Séoul' },
  { id: 'thai', title: 'กรุงเทพมหานคร' },
  { id: 'hebrew', title: 'שלום עולם' },
  { id: 'emoji', title: '👩‍👩‍👧 family 🎉' },
]

describeServer('search with a ranking', { config }, (server) => {
  beforeAll(async () => {
    for (const table of ['tolerant', 'typos', 'strict', 'weighted'])
      expect((await server.service.post(`${pathOf(table)}/batch`, { inserts: rows })).status).toBe(200)
  })

  const page = async (table: string, q: string, more: object = {}, client: Client = server.service) => {
    const answer = await client.get(`${pathOf(table)}/search${query({ q, ...more })}`)
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`)
    return answer.body
  }
  const ids = async (table: string, q: string, more: object = {}): Promise<string[]> =>
    (await page(table, q, more)).items.map(({ id }: { id: string }) => id)
  const insert = async (table: string, ...inserts: object[]): Promise<void> => {
    expect((await server.service.post(`${pathOf(table)}/batch`, { inserts })).status).toBe(200)
  }

  const exact = ['exact-title', 'exact-long', 'exact-body']
  test('[DB-SEARCH-14] complete words, then prefixes, parts, one typo, two; then weights, shortness and ids', async () => {
    expect(await ids('tolerant', 'heidelberg')).toEqual([...exact, 'prefix', 'part', 'one-typo', 'two-typos'])
    expect(await ids('typos', 'heidelberg')).toEqual([...exact, 'prefix', 'one-typo', 'two-typos'])
    expect(await ids('weighted', 'heidelberg')).toEqual([...exact, 'prefix'])
    expect(await ids('strict', 'heidelberg')).toEqual(exact)
  })

  test('[DB-SEARCH-14] a word counts with its best match, and all words together', async () => {
    const inserts = [
      { id: 'c', title: 'red', body: 'green' },
      { id: 'b', title: 'green red', body: 'red' },
      { id: 'a', title: 'blue', body: 'green red' },
      { id: 'd', title: 'greenish', body: 'red green' },
      { id: 'e', title: 'grren red', body: '' },
      { id: 'f', title: 'green', body: 'blue' },
    ]
    await insert('tolerant', ...inserts)
    expect(await ids('tolerant', 'red green')).toEqual(['b', 'c', 'a', 'd', 'e'])
    expect(await ids('tolerant', 'GREEN  red green')).toEqual(['b', 'c', 'a', 'd', 'e'])
  })

  test.each([
    ['heidelbreg', true],
    ['heidlebreg', true],
    ['hidelberg', true],
    ['heidelbergg', true],
    ['hieeldberg', false],
    ['Keidelberg', false],
    ['HEIDELBREG', true],
  ])('[DB-SEARCH-15] %s', async (q, isFound) => {
    expect((await ids('typos', q)).includes('exact-title')).toBe(isFound)
    expect(await ids('weighted', q)).toEqual(q === 'heidelbreg' ? ['one-typo'] : await ids('strict', q))
  })

  test('[DB-SEARCH-15] words of three letters and numbers have no typos', async () => {
    expect(await ids('typos', 'cut')).toEqual([])
    expect(await ids('typos', '10234576')).toEqual([])
    expect(await ids('typos', '10234567')).toEqual(['number'])
    expect(await ids('typos', 'famliy')).toEqual(['emoji'])
    expect(await ids('typos', 'faimyl')).toEqual([])
  })

  test('[DB-SEARCH-16] the last word is a prefix unless the table says otherwise', async () => {
    expect(await ids('weighted', 'heidelb')).toEqual(['exact-title', 'one-typo', 'prefix', 'exact-long', 'exact-body'])
    expect(await ids('weighted', 'heidelb castle')).toEqual([])
    expect(await ids('strict', 'heidelb')).toEqual([])
    expect(await ids('strict', 'castle heidelberg')).toEqual(['exact-body'])
  })

  test('[DB-SEARCH-16] parts of words, of three letters or more', async () => {
    expect(await ids('tolerant', 'delb')).toEqual([
      ...['exact-title', 'one-typo', 'other-initial', 'prefix', 'part', 'exact-long', 'exact-body'],
    ])
    expect(await ids('tolerant', 'ber')).toContain('prefix')
    expect(await ids('tolerant', 'er')).toEqual([])
    expect(await ids('typos', 'delb')).toEqual([])
  })

  test.each([
    ['京', ['kyoto', 'tokyo']],
    ['東京', ['tokyo']],
    ['京都', ['kyoto', 'tokyo']],
    ['東京都', ['tokyo']],
    ['東京都庁', ['tokyo']],
    ['都京', []],
    ['東京庁', []],
    ['京都 東京', ['tokyo']],
    ['서울', ['seoul']],
    ['울', ['seoul']],
    ['เทพ', ['thai']],
    ['שלום', ['hebrew']],
    ['family🎉', ['emoji']],
  ])('[DB-SEARCH-17] %s', async (q, expected) => {
    for (const table of ['tolerant', 'typos', 'strict', 'weighted']) expect(await ids(table, q)).toEqual(expected)
  })

  test('[DB-SEARCH-17] parts of a text without spaces that is longer than any term', async () => {
    const characters = times(2000, (n) => String.fromCodePoint(0x4e00 + n)).join('')
    await insert('weighted', { id: 'long', title: 'long', body: characters })
    for (const at of [0, 127, 128, 200, 255, 256, 700, 1900, 1999]) {
      expect(await ids('weighted', characters.slice(at, at + 100))).toEqual(['long'])
      expect((await page('weighted', characters.slice(at, at + 3))).items[0].highlights.body).toContain(
        `<mark>${characters.slice(at, at + 3)}</mark>`,
      )
    }
    expect(await ids('weighted', `${characters.slice(0, 50)}${characters.slice(51, 60)}`)).toEqual([])
  })

  test('[DB-SEARCH-18] highlights mark words with typos, complete words around parts, and parts of texts without spaces', async () => {
    const marked = async (table: string, q: string, id: string) =>
      (await page(table, q)).items.find((item: { id: string }) => item.id === id)?.highlights
    expect(await marked('typos', 'heidelbreg', 'exact-body')).toEqual({ body: 'above <mark>heidelberg</mark>' })
    expect(await marked('tolerant', 'delb', 'exact-long')).toEqual({ title: '<mark>Heidelberg</mark> Hauptbahnhof' })
    expect(await marked('weighted', '京都', 'tokyo')).toEqual({
      title: '東<mark>京都</mark>庁',
      body: '<mark>京都</mark>と東京',
    })
    expect(await marked('weighted', '京都 東京', 'tokyo')).toEqual({
      title: '<mark>東京都</mark>庁',
      body: '<mark>京都</mark>と<mark>東京</mark>',
    })
    await insert('weighted', { id: 'html', title: '<b>Heidelberg</b> & "京都"' })
    expect(await marked('weighted', 'heidelberg 京都', 'html')).toEqual({
      title: '&lt;b&gt;<mark>Heidelberg</mark>&lt;/b&gt; &amp; &quot;<mark>京都</mark>&quot;',
    })
  })

  test('[DB-SEARCH-4, DB-SEARCH-7, DB-SEARCH-13] bounds and syntax of the text are those of every search', async () => {
    const path = `${pathOf('tolerant')}/search`
    expectRefusal(await server.service.get(path + query({ q: times(21, (n) => `w${n}`).join(' ') })), 400)
    // A run without spaces between scripts is as many words as it has changes of script.
    expectRefusal(await server.service.get(path + query({ q: '東a'.repeat(11) })), 400)
    expectRefusal(await server.service.get(path + query({ q: 'x'.repeat(3000) })), 400)
    expectRefusal(await server.service.get(path), 400)
    expectRefusal(await server.service.get(`${path}?q=`), 400)
    for (const q of ['?', '"', '*', '((((', "'", '\\', '%', '_', '*ber', 'x" OR "y', '🎉', '\u0301', '[', ':*', '|&!'])
      expect((await page('tolerant', q)).total).toBeLessThan(rows.length)
    expect(await ids('tolerant', times(20, () => 'heidelberg').join(' '))).toEqual(await ids('tolerant', 'heidelberg'))
    const word = 'w'.repeat(2000)
    await insert('tolerant', { id: 'word', title: word }, { id: 'other', title: `${word.slice(0, 1990)}x` })
    expect(await ids('tolerant', word)).toEqual(['other', 'word'])
    expect(await ids('tolerant', 'w'.repeat(254))).toEqual(['other', 'word'])
  })

  test('[DB-SEARCH-4, DB-SEARCH-14] a search for twenty terms of every kind', async () => {
    const words = times(10, (n) => `wrod${String.fromCodePoint(97 + n).repeat(6)}`)
    const texts = times(10, (n) => String.fromCodePoint(...times(9, (at) => 0x5000 + 10 * n + at)))
    await insert('tolerant', {
      id: 'twenty',
      title: words.map((word) => `x${word.replace('wrod', 'word')}`).join(' '),
      body: `${words.map((word) => word.replace('wrod', 'word')).join(' ')} ${texts.join(' ')}`,
    })
    expect(await ids('tolerant', [...words, ...texts].join(' '))).toEqual(['twenty'])
    expect(await ids('tolerant', [...words, ...texts.slice(1), '東京'].join(' '))).toEqual([])
  })

  test('[DB-SEARCH-19] a record with more terms than the index keeps is found by those of its weightiest fields', async () => {
    const body = times(9000, (n) => `word${n.toString(36)}`).join(' ')
    await insert('typos', { id: 'many', title: 'enormous', body })
    expect(await ids('typos', 'enormous')).toEqual(['many'])
    expect(await ids('typos', 'word1 word2')).toEqual(['many'])
    expect(await ids('typos', `word${(8999).toString(36)}x`)).toEqual([])
    expect((await server.service.delete(`${pathOf('typos')}/many`)).status).toBe(200)
    expect(await ids('typos', 'enormous')).toEqual([])
    const long = `${'early '.repeat(8000)}almost ${'later '.repeat(8000)}beyond`
    await insert('typos', { id: 'long', title: 'enormous', body: long })
    expect([await ids('typos', 'almost'), await ids('typos', 'beyond')]).toEqual([['long'], []])
    const characters = times(45_000, (n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('')
    await insert('typos', { id: 'long-unspaced', body: characters })
    expect(await ids('typos', characters.slice(100, 140))).toEqual(['long-unspaced'])
  })

  test('[DB-SEARCH-18, DB-SEARCH-19] of all fields, a part is searched and highlighted, the weightiest first', async () => {
    const text = 'tall '.repeat(10_000)
    const fields = { title: text, body: text.slice(0, 49_000), kind: 'tall', ownerId: `tall last ${text}beyond` }
    await insert('long', { id: 'three', ...fields }, { id: 'four', ...fields, body: text })
    expect(await ids('long', 'last')).toEqual(['three'])
    expect(await ids('long', 'beyond')).toEqual([])
    const marked = async (id: string) =>
      (await page('long', 'tall')).items.find((item: { id: string }) => item.id === id).highlights
    expect(Object.keys(await marked('three'))).toEqual(['title', 'body', 'kind', 'ownerId'])
    expect(Object.keys(await marked('four'))).toEqual(['title', 'body', 'kind'])
  })

  test('[DB-SEARCH-10] a record is found by its new text and not by its old one, also with typos', async () => {
    await insert('typos', { id: 'new', title: 'Stuttgart' })
    expect(await ids('typos', 'stuttgrat')).toEqual(['new'])
    expect((await server.service.patch(`${pathOf('typos')}/new`, { title: 'Mannheim' })).status).toBe(200)
    expect([await ids('typos', 'stuttgrat'), await ids('typos', 'mannhiem')]).toEqual([[], ['new']])
    expect((await server.service.patch(`${pathOf('typos')}/new`, { kind: 'x' })).status).toBe(200)
    expect(await ids('typos', 'mannhiem')).toEqual(['new'])
    expect((await server.service.patch(`${pathOf('typos')}/new`, { title: null })).status).toBe(200)
    expect(await ids('typos', 'mannhiem')).toEqual([])
  })

  test('[DB-SEARCH-10] writers that add, change and remove the same words at once leave a complete index', async () => {
    const words = times(30, (n) => `shared${String.fromCodePoint(97 + n)}word`)
    const path = `${pathOf('weighted')}/batch`
    const write = (n: number): Promise<number> => {
      const ordered = n % 2 === 0 ? words : words.toReversed()
      const inserts = times(10, (at) => ({ id: `w${n}-${at}`, title: ordered[at], body: ordered.join(' ') }))
      return server.service.post(path, { inserts }).then(({ status }) => status)
    }
    expect(new Set(await Promise.all(times(12, write)))).toEqual(new Set([200]))
    const change = (n: number): Promise<number> => {
      const updates = times(5, (at) => ({ id: `w${n}-${at}`, data: { title: 'changed', body: words[n] } }))
      const deletes = times(3, (at) => `w${n}-${9 - at}`)
      return server.service.post(path, { updates, deletes }).then(({ status }) => status)
    }
    expect(new Set(await Promise.all(times(12, change)))).toEqual(new Set([200]))
    // Two records of each batch have all words, and five of one batch have one of them.
    for (const [n, word] of words.entries()) expect((await page('weighted', word)).total).toBe(n < 12 ? 24 + 5 : 24)
    expect((await page('weighted', 'changed')).total).toBe(60)
  })

  test('[DB-SEARCH-11] pages continue in the order, with any limit', async () => {
    await insert(
      'strict',
      ...times(50, (n) => ({ id: `p${n}`, title: n % 3 ? 'page' : 'other', body: `page ${'x'.repeat(n % 7)}` })),
    )
    const all = await ids('strict', 'page', { limit: 100 })
    expect(all.length).toBe(50)
    for (const limit of [7, 50]) {
      const seen: string[] = []
      for (let after: string | null = ''; after !== null; ) {
        const { items, cursor } = await page('strict', 'page', { limit, after })
        seen.push(...items.map(({ id }: { id: string }) => id))
        after = cursor
      }
      expect(seen).toEqual(all)
    }
    expect(await ids('strict', 'page', { limit: 7, offset: 7 })).toEqual(all.slice(7, 14))
    const { cursor } = await page('strict', 'page', { limit: 7, after: '' })
    expectRefusal(await server.service.get(`${pathOf('strict')}/search${query({ q: 'other', after: cursor })}`), 400)
  })

  test('[DB-EXPLAIN-1] the statement of a search is explained with a service key only', async () => {
    const { explain, total } = await page('tolerant', 'heidleberg 東京都 delb', { explain: 1 })
    expect(total).toBe(0)
    expect(explain.sql).toContain('_terms_tolerant')
    expectRefusal(await server.anonymous.get(`${pathOf('tolerant')}/search${query({ q: 'x', explain: 1 })}`), 403)
  })

  test('[DB-NS-6] instances share no words', async () => {
    const notes = (id: string): string => `/api/db/space/${id}/tables/notes`
    for (const id of ['p', 'q'])
      expect(
        (await server.service.post(notes(id), { id: 'n', title: `Karlsruhe ${id === 'p' ? '東京' : ''}` })).status,
      ).toBe(201)
    const total = async (id: string, q: string) =>
      (await server.service.get(`${notes(id)}/search${query({ q })}`)).body.total
    expect([await total('p', 'karlsrueh'), await total('p', '東'), await total('q', '東')]).toEqual([1, 1, 0])
    expect(await total('unwritten', 'karlsrueh')).toBe(0)
    expect((await server.service.delete(`${notes('p')}/n`)).status).toBe(200)
    expect([await total('p', 'karlsruhe'), await total('q', 'lsru')]).toEqual([0, 1])
  })

  describe('rows of others', () => {
    const visible = [
      { id: 'a', ownerId: 'u', kind: 'x', title: 'Heidelberg', body: 'castle' },
      { id: 'b', ownerId: 'u', kind: 'y', title: 'Heidelbreg', body: '東京都' },
      { id: 'c', ownerId: 'u', kind: 'x', title: 'mountain', body: 'heidleberg views' },
    ]
    const letters = [...'abcdefghijklmnopqrstuvwxyz']
    /** Better matches than the visible ones, every word with one typo, and words that only others have. */
    const denied = [
      ...times(60, (n) => ({
        id: `d${n}`,
        ownerId: 'v',
        kind: 'z',
        title: 'Heidelberg',
        body: 'castle mountain 東京都',
      })),
      ...times(10, (at) => ({
        id: `t${at}`,
        ownerId: 'v',
        kind: 'z',
        title: 'near',
        body: letters
          .flatMap((one) => [`heidelberg`.slice(0, at) + one + `heidelberg`.slice(at), `moun${one}ain`])
          .join(' '),
      })),
      { id: 'e', ownerId: null, title: 'confidential' },
    ]
    test('[DB-SEARCH-9, DB-SEARCH-20] change no response', async () => {
      await insert('mixed', ...visible.map((one) => ({ ...one, secret: 'heidelberg' })), ...denied)
      await insert('bare', ...visible.map((one) => ({ ...one, secret: 'heidelberg' })))
      const client = server.as('u')
      for (const q of [
        'heidelberg',
        'heidelbreg',
        'hiedelberg',
        'mountian',
        'delb',
        'casl',
        '東京',
        '東',
        'confidental',
        'confidential',
        'near',
      ])
        for (const probe of [
          `/search${query({ q })}`,
          `/search${query({ q, limit: 1, after: '' })}`,
          `/search${query({ q, filter: [['kind', '==', 'x']] })}`,
          `/aggregate${query({ q, group: ['kind'], measures: { n: 'count' } })}`,
          `/aggregate${query({ q, measures: { n: 'count' } })}`,
        ]) {
          const [mixed, bare] = [await client.get(pathOf('mixed') + probe), await client.get(pathOf('bare') + probe)]
          const comparable = ({ status, body }: typeof mixed) =>
            JSON.stringify([status, body], (key, value) =>
              ['cursor', 'createdAt', 'updatedAt'].includes(key) ? null : value,
            )
          expect(comparable(mixed)).toBe(comparable(bare))
        }
    })
  })
})
