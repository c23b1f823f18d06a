/**
 * The dictionary of tables that correct typos: what a search reads of it does not depend on words that are not similar,
 * and it has the words of all records, and of no others, also with writers of the same words at the same time.
 */
import { afterEach, describe, expect, test } from 'bun:test'
import pg from 'pg'
import { typoWordsRead } from '../../../src/limits/api.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { readDictionary } from '../../harness/records/dictionary.ts'
import { describeServer, startServer, type TestServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

type Auth = { id: string } | null
const schema = { title: { type: 'string' }, body: { type: 'text' }, ownerId: { type: 'string' } } as const
const ranked = { schema, search: ['title', 'body'], searchOptions: { typos: true } } as const
const own = { read: (auth: Auth) => auth !== null && { ownerId: auth.id } }
const config = {
  databases: {
    shared: {
      tables: {
        mixed: { ...ranked, access: own },
        bare: { ...ranked, access: own },
        similar: { ...ranked, access: own },
        written: { ...ranked, access: open },
      },
    },
  },
}
const pathOf = (table: string): string => `/api/db/shared/tables/${table}`
/** The number in letters, none of which is in the searched words. */
const lettersOf = (n: number): string => [...String(n)].map((digit) => 'fjkpqvwxyz'[Number(digit)]).join('')

describeServer('the dictionary of a table that corrects typos', { config }, (server) => {
  const insert = async (table: string, ...inserts: object[]): Promise<void> => {
    const { status, text } = await server.service.post(`${pathOf(table)}/batch`, { inserts })
    if (status !== 200) throw new Error(text)
  }
  const remove = async (table: string, filter: unknown): Promise<void> => {
    const body = { action: 'delete', filter }
    expect((await server.service.post(`${pathOf(table)}/batch-by-filter`, body)).status).toBe(200)
  }

  const visible = [
    { id: 'a', ownerId: 'u', title: 'Heidelberg', body: 'castle' },
    { id: 'b', ownerId: 'u', title: 'mountain' },
  ]
  const searches = ['heidleberg', 'mountian', 'catsle', 'hedelberg', 'mountaineering']

  test('[DB-SEARCH-20, DB-SEARCH-23] a search reads as much whatever words the rows of others have', async () => {
    const denied = ['h', 'm', 'c'].flatMap((initial) =>
      times(20, (n) => ({
        ownerId: 'v',
        title: `${initial}zq${lettersOf(n)}`,
        // As long as the searched words, with their first letters, and with one of their pieces.
        body: times(60, (at) => {
          const own = lettersOf(1000 + 60 * n + at)
          return `${initial}${own}xx ${initial}${own}zqxzx ${initial}ei${own}wxz ${initial}ou${own}q ${initial}${own}zzrg`
        }).join(' '),
      })),
    )
    await insert('bare', ...visible)
    await insert('mixed', ...visible, ...denied)
    const [bare, mixed] = [
      await readDictionary(server, 'shared', 'bare'),
      await readDictionary(server, 'shared', 'mixed'),
    ]
    expect(mixed.words.length).toBeGreaterThan(10_000)
    expect(mixed.words).toEqual(mixed.used)
    const client = server.as('u')
    for (const word of searches) {
      const visited = mixed.visited(word)
      expect([word, visited]).toEqual([word, bare.visited(word)])
      expect(visited.entries).toBeLessThanOrEqual(250)
      const [inMixed, inBare] = await Promise.all(
        ['mixed', 'bare'].map(async (table) => {
          const { status, body } = await client.get(`${pathOf(table)}/search${query({ q: word })}`)
          return { status, total: body.total, ids: body.items.map(({ id }: { id: string }) => id) }
        }),
      )
      expect(inMixed).toEqual(inBare)
      expect(inMixed?.total).toBe(word === 'mountaineering' ? 0 : 1)
    }
    await remove('mixed', [['ownerId', '==', 'v']])
    expect(await readDictionary(server, 'shared', 'mixed')).toMatchObject({ words: bare.words, used: bare.words })
  })

  test('[DB-SEARCH-15, DB-SEARCH-20] more similar words than one statement reads change no response', async () => {
    // Each has the first and the last piece of the searched word.
    const words = times(2 * typoWordsRead + 100, (n) => `hei${lettersOf(10_000 + n).slice(1, 5)}erg`)
    await insert('similar', ...visible)
    for (let at = 0; at < words.length; at += 1000)
      await insert('similar', { ownerId: 'v', title: 'x', body: words.slice(at, at + 1000).join(' ') })
    const { visited } = await readDictionary(server, 'shared', 'similar')
    expect(new Set(visited('heidleberg').words).size).toBeGreaterThan(2 * typoWordsRead)
    const { body } = await server.as('u').get(`${pathOf('similar')}/search${query({ q: 'heidleberg' })}`)
    expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['a'])
    expect(body.total).toBe(1)
  })

  test('[DB-SEARCH-10] writers of the same words at the same time leave all words of the records', async () => {
    const words = times(20, (n) => `shared${lettersOf(n)}word`)
    const write = async (n: number): Promise<void> => {
      const ordered = n % 2 === 0 ? words : words.toReversed()
      const path = pathOf('written')
      for (let round = 0; round < 6; round++) {
        const inserts = times(4, (at) => ({ id: `w${n}-${at}`, title: ordered[at + n], body: ordered.join(' ') }))
        expect((await server.service.post(`${path}/batch`, { inserts })).status).toBe(200)
        const updates = times(2, (at) => ({ id: `w${n}-${at}`, data: { title: 'changed', body: words[n + round] } }))
        const deletes = round < 5 ? times(4, (at) => `w${n}-${at}`) : [`w${n}-3`]
        expect((await server.service.post(`${path}/batch`, { updates })).status).toBe(200)
        expect((await server.service.post(`${path}/batch`, { deletes })).status).toBe(200)
      }
    }
    await Promise.all(times(8, write))
    const { words: stored, used } = await readDictionary(server, 'shared', 'written')
    expect(used.length).toBeGreaterThan(10)
    expect(used.filter((word) => !stored.includes(word))).toEqual([])
    const total = async (q: string) =>
      (await server.service.get(`${pathOf('written')}/search${query({ q })}`)).body.total
    expect(await total('chnaged')).toBe(16)
    expect(await total('sharde'.concat(lettersOf(3), 'word'))).toBeGreaterThan(0)
  })
})

describe.skipIf(!sharedEngine)('transactions that add and remove a word at the same time', () => {
  let server: TestServer | null = null
  let other: pg.Client | null = null
  afterEach(async () => {
    await other?.end()
    await server?.close()
    server = other = null
  })

  /** Records a and b, of which a has the word, and a transaction of another connection. */
  const start = async (titleOfB: string) => {
    server = await startServer({ config }, sharedEngine)
    const running = server
    const path = pathOf('written')
    other = new pg.Client({ connectionString: running.settings().databaseUrl as string })
    await other.connect()
    const insert = async (id: string, title = 'Heidelberg') =>
      expect((await running.service.post(path, { id, title })).status).toBe(201)
    await insert('a')
    await insert('b', titleOfB)
    await other.query('BEGIN')
    return {
      other,
      insert,
      remove: async (id: string) => expect((await running.service.delete(`${path}/${id}`)).status).toBe(200),
      /** Of the other connection: the row has the words of these terms from now on. */
      setTerms: (terms: object) =>
        other?.query(`UPDATE "shared"."written" SET "_terms" = $1 WHERE id = 'b'`, [JSON.stringify(terms)]),
      find: async () =>
        (await running.service.get(`${path}/search${query({ q: 'heidleberg' })}`)).body.items.map(
          ({ id }: { id: string }) => id,
        ),
      words: async () => (await readDictionary(running, 'shared', 'written')).words,
    }
  }

  test('[DB-SEARCH-10] a word stays if its last record is deleted while another one gets it', async () => {
    const { other, remove, setTerms, find } = await start('Mannheim')
    await setTerms({ heidelberg: 1 })
    await remove('a')
    await other.query('COMMIT')
    expect(await find()).toEqual(['b'])
  })

  test('[DB-SEARCH-10] a record gets a word that another transaction removes', async () => {
    for (const end of ['COMMIT', 'ROLLBACK']) {
      const { other, insert, remove, setTerms, find, words } = await start('Heidelberg')
      await remove('a')
      await setTerms({})
      await insert('c')
      await other.query(end)
      expect(await find()).toEqual(end === 'COMMIT' ? ['c'] : ['b', 'c'])
      await remove('b')
      await remove('c')
      expect(await words()).toEqual([])
      await other.end()
      await server?.close()
      server = null
    }
  })
})
