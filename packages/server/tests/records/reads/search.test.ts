/** GET {base}/search: matches, order and highlights. The text of a search is never query syntax. */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const base = '/api/db/shared/tables/posts'
const plain = '/api/db/shared/tables/plain'
const owned = '/api/db/shared/tables/owned'
const many = '/api/db/shared/tables/many'

type Auth = { id: string } | null

const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string' },
            body: { type: 'text' },
            rank: { type: 'number' },
            note: { type: 'string' },
          },
          search: ['title', 'body'],
          access: open,
        },
        plain: { schema: { title: { type: 'string' } }, access: open },
        owned: {
          schema: { title: { type: 'string' }, ownerId: { type: 'string' } },
          search: ['title'],
          access: {
            read: (auth: Auth) => auth !== null && { ownerId: auth.id },
            insert: true,
            update: true,
            delete: true,
          },
        },
        many: {
          schema: { text: { type: 'text' }, more: { type: 'text' } },
          search: ['text', 'more'],
          access: open,
        },
      },
    },
  },
} as const

const rows = [
  { id: 'a', title: 'The quick brown fox', body: 'jumps over the lazy dog', rank: 1, note: 'unsearched' },
  { id: 'b', title: 'Fox', body: 'A fox is a fox is a fox', rank: 2 },
  { id: 'c', title: 'Dogs', body: 'quick <b>dogs</b> & "cats"', rank: 3 },
  { id: 'd', title: 'Zürich', body: 'straße naïve ÉCOLE', rank: 4 },
  { id: 'e', title: 'Numbers 2026', body: 'C++ and node.js v1.2', rank: 5 },
  { id: 'f', title: null, body: null, rank: 6 },
  { id: 'g', title: "O'Brien", body: 'email@example.com under_score', rank: 7 },
  { id: 'h', title: '東京タワー', body: 'Привет мир', rank: 8 },
]

describeServer('search', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.service.post(`${base}/batch`, { inserts: rows })).status).toBe(200)
    const inserts = Array.from({ length: 9 }, (_, i) => ({
      id: `o${i}`,
      title: `secret ${i % 3 === 0 ? 'plan' : 'party'}`,
      ownerId: i % 3 === 0 ? 'alice' : 'bob',
    }))
    expect((await server.service.post(`${owned}/batch`, { inserts })).status).toBe(200)
    const texts = Array.from({ length: 250 }, (_, i) => ({
      id: `m${String(i).padStart(3, '0')}`,
      text: `common word${i}`,
    }))
    expect((await server.service.post(`${many}/batch`, { inserts: texts })).status).toBe(200)
  })

  const ids = async (q: string, more: Record<string, unknown> = {}, path = base): Promise<string> => {
    const { status, body, text } = await server.anonymous.get(`${path}/search${query({ q, ...more })}`)
    if (status !== 200) throw new Error(`${status}: ${text}`)
    expect(body.total).toBeGreaterThanOrEqual(body.items.length)
    return body.items
      .map(({ id }: { id: string }) => id)
      .sort()
      .join('')
  }

  const found: readonly [rule: string, q: string, ids: string][] = [
    ['DB-SEARCH-3', 'fox', 'ab'],
    ['DB-SEARCH-3', 'FOX', 'ab'],
    ['DB-SEARCH-3', 'quick fox', 'a'],
    ['DB-SEARCH-3', 'fox quick', 'a'],
    ['DB-SEARCH-3', 'quick lazy', 'a'],
    ['DB-SEARCH-3', 'qui', 'ac'],
    ['DB-SEARCH-3', 'qui fox', ''],
    ['DB-SEARCH-3', 'fox qui', 'a'],
    ['DB-SEARCH-3', 'dog', 'ac'],
    ['DB-SEARCH-3', 'dogs', 'c'],
    ['DB-SEARCH-3', '  fox   brown ', 'a'],
    ['DB-SEARCH-3', 'nothing', ''],
    ['DB-SEARCH-3', '2026', 'e'],
    ['DB-SEARCH-3', 'Привет', 'h'],
    ['DB-SEARCH-3', 'мир', 'h'],
    ['DB-SEARCH-3', 'zürich', 'd'],
    ['DB-SEARCH-3', 'unsearched', ''],
    ['DB-SEARCH-7', '"fox"', 'ab'],
    ['DB-SEARCH-7', '"lazy quick"', 'a'],
    ['DB-SEARCH-7', '"fox', 'ab'],
    ['DB-SEARCH-7', "O'Brien", 'g'],
    ['DB-SEARCH-7', 'fox*', 'ab'],
    ['DB-SEARCH-7', 'q*', 'ac'],
    ['DB-SEARCH-7', '(fox', 'ab'],
    ['DB-SEARCH-7', 'fox)', 'ab'],
    ['DB-SEARCH-7', '^fox', 'ab'],
    ['DB-SEARCH-7', '-fox', 'ab'],
    ['DB-SEARCH-7', '+fox', 'ab'],
    ['DB-SEARCH-7', 'fox -brown', 'a'],
    ['DB-SEARCH-7', 'fox OR dogs', ''],
    ['DB-SEARCH-7', 'fox AND', ''],
    ['DB-SEARCH-7', 'fox NOT brown', ''],
    ['DB-SEARCH-7', 'NEAR(fox dog, 5)', ''],
    ['DB-SEARCH-7', '{title body} : fox', ''],
    ['DB-SEARCH-7', 'fox & dog | cat ! :* <->', ''],
    ['DB-SEARCH-7', 'email@example.com', 'g'],
    ['DB-SEARCH-7', 'node.js', 'e'],
  ]
  for (const [rule, q, expected] of found)
    test(`[${rule}] ${JSON.stringify(q)}`, async () => expect(await ids(q)).toBe(expected))

  for (const q of [
    '?',
    '"',
    '""',
    '*',
    '((((',
    "'",
    '\\',
    ';',
    '-- x',
    'x" OR "y',
    '%',
    '_',
    '\u0000x',
    '\uD83D\uDE00',
    'a"b"c*',
    ':',
    'title:fox',
    "fox' --",
    ' . ',
    '\u200B',
    '{',
    '^',
    '$1',
    '?1',
    '\uFFFD',
  ])
    test(`[DB-SEARCH-7, ERR-7] ${JSON.stringify(q)} is treated as words`, async () => {
      const { status } = await server.anonymous.get(`${base}/search${query({ q })}`)
      expect([200, 400]).toContain(status)
    })

  test('[DB-SEARCH-13] only the first 255 characters of a word are significant, in records and in searches', async () => {
    const [long, accented, rare] = ['z'.repeat(1000), `É${'z'.repeat(300)}`, '𠀀'.repeat(260)]
    const inserts = [
      { id: 'l1', title: long },
      { id: 'l2', title: `${'z'.repeat(255)}y` },
      { id: 'l3', title: 'z'.repeat(254) },
      { id: 'l4', title: accented },
      { id: 'l5', title: rare },
    ]
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    const found = async (q: string): Promise<string> => {
      const { body } = await server.anonymous.get(`${base}/search${query({ q })}`)
      const found = body.items.map(({ id }: { id: string }) => id)
      return found.sort().join(' ')
    }
    expect(await found('zzz')).toBe('l1 l2 l3')
    for (const q of [long, 'z'.repeat(255), 'z'.repeat(256), `${'z'.repeat(255)}q`])
      expect(await found(q)).toBe('l1 l2')
    expect(await found('z'.repeat(254))).toBe('l1 l2 l3')
    expect(await found(`${'z'.repeat(254)} z`)).toBe('l3')
    for (const q of ['ez', `e${'z'.repeat(300)}`, `E\u0301${'z'.repeat(254)}`]) expect(await found(q)).toBe('l4')
    for (const q of ['𠀀', rare, '𠀀'.repeat(255)]) expect(await found(q)).toBe('l5')
    const deletes = inserts.map(({ id }) => id)
    expect((await server.service.post(`${base}/batch`, { deletes })).status).toBe(200)
  })

  test('[DB-SEARCH-3, ERR-7] a word longer than any indexed word matches no record', async () => {
    for (const word of ['x'.repeat(2048), 'あ'.repeat(800)])
      for (const q of [word, `fox ${word}`.slice(0, 2048), `${word.slice(4)} fox`]) {
        const { status, body } = await server.anonymous.get(`${base}/search${query({ q })}`)
        expect(status).toBe(200)
        expect(body).toMatchObject({ items: [], total: 0 })
      }
  })

  test('[DB-SEARCH-10, ERR-7] texts too large for the index are stored', async () => {
    const long = (from: number) =>
      times(2600, (n) => String.fromCharCode(0x4e00 + from + n).repeat(2) + '語'.repeat(98)).join(' ')
    const { status } = await server.anonymous.post(many, { id: 'long', text: `first ${long(0)}` })
    expect(status).toBe(201)
    const updated = await server.anonymous.patch(`${many}/long`, { more: `second ${long(3000)}` })
    expect(updated.status).toBe(200)
    expect(updated.body.more?.length).toEqual(7 + 2600 * 101 - 1)
    const found = await server.anonymous.get(`${many}/search${query({ q: 'first', fields: 'id' })}`)
    expect(found.body.items).toMatchObject([{ id: 'long' }])
    expect((await server.anonymous.delete(`${many}/long`)).status).toBe(200)
  })

  test('[DB-SEARCH-7] a column name is not query syntax', async () => {
    expect(await ids('title')).toBe('')
    expect(await ids('rank')).toBe('')
  })

  test('[DB-SEARCH-1] a search returns a list with offsets', async () => {
    const { body } = await server.anonymous.get(`${base}/search${query({ q: 'fox' })}`)
    expect(body).toMatchObject({ total: 2, page: 1, perPage: 100, hasMore: null, cursor: null })
    expect(body.items[0]).toMatchObject({
      title: expect.any(String),
      createdAt: expect.any(String),
      highlights: expect.any(Object),
    })
  })

  test('[DB-SEARCH-1] results are ordered by relevance, whatever the sort', async () => {
    const { body } = await server.anonymous.get(`${base}/search${query({ q: 'fox', sort: 'title:desc' })}`)
    expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['b', 'a'])
  })

  test('[DB-SEARCH-5] highlights mark the matched words and prefixes', async () => {
    const { body } = await server.anonymous.get(`${base}/search${query({ q: 'brown qui' })}`)
    expect(body.items[0].highlights.title).toBe('The <mark>quick</mark> <mark>brown</mark> fox')
    const pair = { highlightPre: '[', highlightPost: ']' }
    const tags = await server.anonymous.get(`${base}/search${query({ q: 'lazy', ...pair })}`)
    expect(tags.body.items[0].highlights.body).toBe('jumps over the [lazy] dog')
    const empty = await server.anonymous.get(
      `${base}/search${query({ q: 'lazy', highlightPre: '', highlightPost: '' })}`,
    )
    expect(empty.body.items[0].highlights.body).toBe('jumps over the lazy dog')
    const both = await server.anonymous.get(`${base}/search${query({ q: 'lazy', highlight: ['{', '}'] })}`)
    expect(both.body.items[0].highlights.body).toBe('jumps over the {lazy} dog')
    expect(body.items[0].title).toBe('The quick brown fox')
  })

  test('[DB-SEARCH-6] the text of a highlight is escaped, the tags are not', async () => {
    const { body } = await server.anonymous.get(
      `${base}/search${query({ q: 'dogs', highlightPre: '<em class="x">', highlightPost: '</em>' })}`,
    )
    const text: string = body.items[0].highlights.body
    expect(text.replaceAll(/&#(34|x22);/gi, '&quot;')).toBe(
      'quick &lt;b&gt;<em class="x">dogs</em>&lt;/b&gt; &amp; &quot;cats&quot;',
    )
  })

  test('[DB-SEARCH-6] text that looks like a tag is escaped', async () => {
    await server.anonymous.post(base, { id: 'xss', title: '<img src=x onerror=alert(1)> marker' })
    const { body } = await server.anonymous.get(`${base}/search${query({ q: 'marker' })}`)
    expect(body.items[0].highlights.title).toBe('&lt;img src=x onerror=alert(1)&gt; <mark>marker</mark>')
    await server.anonymous.delete(`${base}/xss`)
  })

  test('[DB-SEARCH-8] limit and offset page through the matches, with an exact total', async () => {
    const seen: string[] = []
    for (let offset = 0; offset < 260; offset += 60) {
      const { body } = await server.anonymous.get(`${many}/search${query({ q: 'common', limit: 60, offset })}`)
      expect(body).toMatchObject({ total: 250, perPage: 60, page: offset / 60 + 1 })
      seen.push(...body.items.map(({ id }: { id: string }) => id))
    }
    expect(seen.length).toBe(250)
    expect(new Set(seen).size).toBe(250)
    const past = await server.anonymous.get(`${many}/search${query({ q: 'common', offset: 1000 })}`)
    expect(past.body.total).toBe(250)
    expect(past.body.items).toEqual([])
    const clamped = await server.anonymous.get(`${many}/search${query({ q: 'common', limit: 5000 })}`)
    expect(clamped.body.perPage).toBe(1000)
    expect(clamped.body.items.length).toBe(250)
  })

  test('[DB-SEARCH-8, DB-FILTER-13] filter and orFilter narrow a search', async () => {
    expect(await ids('fox', { filter: [['rank', '>', 1]] })).toBe('b')
    expect(
      await ids('quick', {
        orFilter: [
          ['id', '==', 'c'],
          ['id', '==', 'b'],
        ],
      }),
    ).toBe('c')
    expect(
      await ids('quick', {
        filter: [['rank', '<', 3]],
        orFilter: [
          ['id', '==', 'c'],
          ['id', '==', 'b'],
        ],
      }),
    ).toBe('')
    expect(await ids('fox', { filter: [['rank', 'in', []]] })).toBe('')
    const { body } = await server.anonymous.get(
      `${many}/search${query({ q: 'common', filter: [['id', '<', 'm100']], limit: 3 })}`,
    )
    expect(body.total).toBe(100)
    expect(body.items).toHaveLength(3)
  })

  test('[DB-SEARCH-8] fields limits the returned fields', async () => {
    const { body } = await server.anonymous.get(`${base}/search${query({ q: 'lazy', fields: 'id,rank' })}`)
    expect(body.items).toEqual([{ id: 'a', rank: 1, highlights: expect.any(Object) }])
  })

  test('[DB-SEARCH-9] only rows that the caller may read are found and counted', async () => {
    const alice = await server.as('alice').get(`${owned}/search${query({ q: 'secret' })}`)
    expect(alice.body.total).toBe(3)
    expect(alice.body.items.length).toBe(3)
    const foreign = await server.as('alice').get(`${owned}/search${query({ q: 'party' })}`)
    expect(foreign.body.total).toBe(0)
    expect(foreign.body.items).toEqual([])
    expectRefusal(await server.anonymous.get(`${owned}/search${query({ q: 'secret' })}`), 401)
    expect((await server.service.get(`${owned}/search${query({ q: 'secret' })}`)).body.total).toBe(9)
  })

  test('[DB-SEARCH-10] a search reflects every kind of write immediately', async () => {
    const moving = async (word: string) =>
      (await server.anonymous.get(`${many}/search${query({ q: word })}`)).body.total
    await server.anonymous.post(many, { id: 'w', text: 'zebra' })
    expect(await moving('zebra')).toBe(1)
    await server.anonymous.patch(`${many}/w`, { text: 'giraffe' })
    expect(await moving('zebra')).toBe(0)
    expect(await moving('giraffe')).toBe(1)
    await server.anonymous.post(`${many}?upsert=true`, { id: 'w', text: 'okapi' })
    expect(await moving('giraffe')).toBe(0)
    expect(await moving('okapi')).toBe(1)
    await server.anonymous.post(`${many}/batch`, { updates: [{ id: 'w', data: { text: 'quagga' } }] })
    expect(await moving('okapi')).toBe(0)
    expect(await moving('quagga')).toBe(1)
    await server.anonymous.patch(`${many}/w`, { text: null })
    expect(await moving('quagga')).toBe(0)
    await server.anonymous.patch(`${many}/w`, { text: 'bongo' })
    expect(
      (
        await server.anonymous.post(`${many}/batch`, {
          inserts: [
            { id: 'w2', text: 'bongo' },
            { id: 'w2', text: 'x' },
          ],
        })
      ).status,
    ).toBe(409)
    expect(await moving('bongo')).toBe(1)
    await server.anonymous.post(`${many}/batch-by-filter`, {
      action: 'update',
      filter: [['id', '==', 'w']],
      data: { text: 'kudu' },
    })
    expect(await moving('bongo')).toBe(0)
    expect(await moving('kudu')).toBe(1)
    await server.anonymous.delete(`${many}/w`)
    expect(await moving('kudu')).toBe(0)
  })

  const refused = (rule: string, why: string, params: Record<string, unknown>, names?: string): Scenario => ({
    name: `[${rule}] ${why}`,
    path: `${base}/search`,
    query: params,
    status: 400,
    ...(names ? { names } : {}),
  })
  runScenarios(
    server,
    [base],
    [
      refused('DB-SEARCH-2', 'no q', {}, 'q'),
      refused('DB-SEARCH-2', 'an empty q', { q: '' }, 'q'),
      ...['<b>', '["<b>"]', '["<b>","</b>","x"]', '["<b>",1]', '{}', ''].map((highlight) =>
        refused('DB-SEARCH-5', `highlight ${highlight}`, { q: 'fox', highlight }, 'highlight'),
      ),
      {
        name: '[DB-SEARCH-2] a table without search',
        path: `${plain}/search`,
        query: { q: 'x' },
        status: 400,
        names: 'search',
      },
      {
        name: '[DB-SEARCH-4] twenty words',
        path: `${base}/search`,
        query: { q: Array(20).fill('fox').join(' ') },
        status: 200,
      },
      refused('DB-SEARCH-4', 'twenty-one words', { q: Array(21).fill('fox').join(' ') }, 'q'),
      refused('DB-SEARCH-4', 'a very long text', { q: 'fox '.repeat(2000) }, 'q'),
      refused('DB-LIST-9', 'limit 0', { q: 'fox', limit: '0' }, 'limit'),
      refused('DB-LIST-9', 'offset below 0', { q: 'fox', offset: '-1' }, 'offset'),
      refused('DB-LIST-14', 'an unknown field in fields', { q: 'fox', fields: 'nope' }, 'nope'),
      refused('DB-FILTER-8', 'an unknown field in filter', { q: 'fox', filter: [['nope', '==', 1]] }, 'filter[0]'),
    ],
  )
})
