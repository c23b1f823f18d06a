/** Lists and searches whose page would exceed the response limit: where a page ends, and how the next one continues. */
import { beforeAll, expect, test } from 'bun:test'
import { cursorCharsMax } from '../../../src/limits/api.ts'
import { type Client, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const responseBytes = 64 * 1024
const base = '/api/db/shared/tables/notes'
const loose = '/api/db/shared/tables/loose'
const huge = '/api/db/shared/tables/huge'

const schema = {
  title: { type: 'string' },
  body: { type: 'text' },
  data: { type: 'json' },
  rank: { type: 'number' },
  done: { type: 'boolean' },
} as const

const config = {
  databases: {
    shared: {
      tables: {
        notes: { schema, search: ['body'], access: open },
        loose: { access: open },
        huge: { schema, access: open },
      },
    },
  },
  limits: { responseBytes: '64kb' },
} as const

/** About 9 KB, with characters that take more bytes in UTF-8 and escapes that take more in JSON. */
const note = (n: number) => ({
  id: `n${String(n).padStart(2, '0')}`,
  title: `Title ${n}`,
  body: `needle ${'é'.repeat(2000)} ${'\n'.repeat(1000)} needle`,
  data: { list: ['x'.repeat(3000)], n, 'a "b"': null },
  rank: 30 - n,
  done: n % 2 === 0,
})
const notes = Array.from({ length: 30 }, (_, i) => note(i))

interface Page {
  readonly items: readonly Record<string, unknown>[]
  readonly cursor: string | null
  readonly truncated?: true
  readonly hasMore: boolean | null
}

describeServer('large pages', { config }, (server) => {
  beforeAll(async () => {
    for (const path of [base, loose])
      for (let at = 0; at < notes.length; at += 3)
        expect((await server.service.post(`${path}/batch`, { inserts: notes.slice(at, at + 3) })).status).toBe(200)
    // More than is read in one step, and more than a page of a reader thread.
    const rows = Array.from({ length: 24 }, (_, i) => ({
      id: `h${String(i).padStart(2, '0')}`,
      body: 'b'.repeat(700_000),
      rank: i % 5,
    }))
    for (const row of rows) expect((await server.service.post(huge, row)).status).toBe(201)
  })

  async function page(client: Client, path: string, params: Record<string, unknown>): Promise<Page> {
    const { status, text, body } = await client.get(path + query(params))
    expect(status).toBe(200)
    if (body.items.length > 1) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(responseBytes)
    return body
  }

  /** All items of a list, page by page, and the number of truncated pages. */
  async function walk(path: string, params: Record<string, unknown>, direction: 'after' | 'before' = 'after') {
    const items: Record<string, unknown>[] = []
    let truncated = 0
    let next = await page(server.service, path, { limit: 1000, ...params })
    for (let pages = 0; pages < 100; pages++) {
      if (direction === 'after') items.push(...next.items)
      else items.unshift(...next.items)
      if (next.truncated) truncated += 1
      if (next.cursor === null || next.hasMore === false) break
      const { page: _, offset: __, ...rest } = params
      next = await page(server.service, path, { limit: 1000, ...rest, [direction]: next.cursor })
    }
    return { items, truncated }
  }

  for (const [name, path] of [
    ['with a schema', base],
    ['without a schema', loose],
  ] as const) {
    test(`[DB-LIST-17] a numbered page of a table ${name} is truncated, and its cursor continues with the rest`, async () => {
      const first = await page(server.service, path, { page: 1 })
      expect(first).toMatchObject({ total: 30, page: 1, perPage: 100, hasMore: null, truncated: true })
      expect(first.items.length).toBeGreaterThan(3)
      expect(first.items.length).toBeLessThan(30)
      const { items, truncated } = await walk(path, { page: 1 })
      expect(items).toMatchObject(notes)
      expect(truncated).toBeGreaterThan(2)
    })

    test(`[DB-LIST-17] paging a table ${name} in both directions and any order returns every record once`, async () => {
      const byRank = notes.toReversed()
      expect((await walk(path, { after: '', sort: 'rank:asc' })).items).toMatchObject(byRank)
      expect((await walk(path, { before: '', sort: 'rank:asc' }, 'before')).items).toMatchObject(byRank)
      expect((await walk(path, { before: '' }, 'before')).items).toMatchObject(notes)
    })

    test(`[DB-LIST-17, DB-LIST-14] only requested fields count toward the limit, in a table ${name}`, async () => {
      const few = await page(server.service, path, { fields: 'id,title,done', sort: 'rank:desc' })
      expect(few.truncated).toBeUndefined()
      expect(few.items).toEqual(notes.map(({ id, title, done }) => ({ id, title, done })))
      const { items, truncated } = await walk(path, { after: '', fields: 'body,data', sort: 'rank:desc' })
      expect(items).toEqual(notes.map(({ body, data }) => ({ body, data })))
      expect(truncated).toBeGreaterThan(1)
    })
  }

  test('[DB-LIST-17] a record larger than the limit is a page by itself', async () => {
    const { items, truncated } = await walk(huge, { after: '', sort: 'rank:desc', fields: 'id,body,rank' })
    expect(items.map(({ rank }) => rank)).toEqual(Array.from({ length: 24 }, (_, i) => i % 5).sort((a, b) => b - a))
    expect(new Set(items.map(({ id }) => id)).size).toBe(24)
    expect(truncated).toBe(23)
    expect((await page(server.service, huge, { sort: 'rank', fields: 'rank' })).items).toHaveLength(24)
  })

  test('[DB-LIST-17, DB-LIST-20] a long text used only for sorting neither ends a page nor enlarges its cursor', async () => {
    const ordered = { sort: 'body,rank:desc', fields: 'rank' }
    const ranks = Array.from({ length: 24 }, (_, i) => i % 5).sort((a, b) => b - a)
    const one = await page(server.service, huge, { ...ordered, limit: 1000 })
    expect(one.truncated).toBeUndefined()
    expect(one.items.map(({ rank }) => rank)).toEqual(ranks)
    const { items, truncated } = await walk(huge, { ...ordered, after: '', limit: 7 })
    expect(truncated).toBe(0)
    expect(items.map(({ rank }) => rank)).toEqual(ranks)
    const { items: whole } = await page(server.service, huge, { sort: 'body', fields: 'id,body', limit: 1 })
    expect(whole.map(({ body }) => (body as string).length)).toEqual([700_000])
  })

  test('[DB-LIST-20] texts with a common prefix longer than a cursor keep their order across pages', async () => {
    const start = 'é'.repeat(cursorCharsMax)
    const ids = ['a', 'b', 'c', 'd', 'e'].map((id) => `alike-${id}`)
    for (const [n, id] of ids.entries())
      expect((await server.service.post(huge, { id, title: 'alike', body: `${start}${9 - n}` })).status).toBe(201)
    const params = { sort: 'body', fields: 'id', filter: [['title', '==', 'alike']], limit: 2 }
    for (const direction of ['after', 'before'] as const) {
      const { items } = await walk(huge, { ...params, [direction]: '' }, direction)
      expect(items.map(({ id }) => id)).toEqual(ids.toReversed())
    }
    for (const id of ids) expect((await server.service.delete(`${huge}/${id}`)).status).toBe(200)
  })

  test('[DB-LIST-18] a large page and a large record have an ETag, and return 304', async () => {
    for (const path of [base, `${base}?after=`, `${huge}/h01`, `${base}/search?q=needle`]) {
      const { headers } = await server.service.get(path)
      expect(headers.get('content-type')).toStartWith('application/json')
      const again = await server.service.get(path, { 'If-None-Match': headers.get('etag') ?? '' })
      expect(again.status).toBe(304)
      expect(again.text).toBe('')
    }
  })

  test('[DB-SEARCH-11] a search is truncated like a list, and its cursor continues', async () => {
    const path = `${base}/search`
    const first = await page(server.service, path, { q: 'needle' })
    expect(first).toMatchObject({ total: 30, page: 1, truncated: true })
    const { items } = await walk(path, { q: 'needle' })
    expect(items.map(({ id }) => id).sort()).toEqual(notes.map(({ id }) => id))
    const other = query({ q: 'other', after: first.cursor })
    expectRefusal(await server.service.get(path + other), 400, 'after')
    for (const after of ['nonsense', '~3~', first.cursor?.replace('~', '~1') ?? ''])
      expectRefusal(await server.service.get(path + query({ q: 'needle', after })), 400, 'after')
    expect((await server.service.get(path + query({ q: 'needle', after: first.cursor, page: 2 }))).status).toBe(400)
  })

  test('[DB-SEARCH-12] a highlight is a snippet of at most 5 marks and 300 characters', async () => {
    const words = Array.from({ length: 5000 }, (_, i) => (i % 3 === 0 ? 'often' : 'filler')).join(' ')
    const body = `${'lead '.repeat(200)}${words}`
    expect((await server.service.post(base, { id: 'many', body })).status).toBe(201)
    const { items } = await page(server.service, `${base}/search`, {
      q: 'often',
      fields: 'id',
      highlightPre: '[',
      highlightPost: ']',
    })
    const { body: snippet } = (items[0] as { highlights: { body: string } }).highlights
    expect(snippet.split('[')).toHaveLength(6)
    expect(snippet).toStartWith('…lead')
    expect(snippet).toEndWith('…')
    expect(snippet.replaceAll(/[[\]…]/g, '').length).toBeLessThanOrEqual(300)
    expect(body).toContain(snippet.replaceAll(/[[\]…]/g, ''))
    expect((await server.service.delete(`${base}/many`)).status).toBe(200)
  })
})
