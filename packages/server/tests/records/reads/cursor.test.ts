/**
 * `after` and `before`: valid cursors, the pages they return, and cursors used for another query.
 */
import { beforeAll, expect, test } from 'bun:test'
import { type Client, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const twins = '/api/db/shared/tables/twins'
const owned = '/api/db/shared/tables/owned'
const spaceOf = (id: string): string => `/api/db/space/${id}/tables/items`

const schema = { title: { type: 'string' }, rank: { type: 'number' } } as const

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, access: open },
        twins: { schema, access: open },
        owned: {
          schema: { ...schema, ownerId: { type: 'string' } },
          access: { read: (auth: { id: string } | null) => auth !== null && { ownerId: auth.id } },
        },
      },
    },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
} as const

/** Ranks repeat or are missing, so that ties and nulls fall on page boundaries. */
const rows = Array.from({ length: 23 }, (_, i) => ({
  id: `i${String(i + 1).padStart(2, '0')}`,
  title: `t${i % 5}`,
  ...(i % 4 === 0 ? {} : { rank: i % 3 }),
}))

type Page = { items: { id: string }[]; hasMore: boolean; cursor: string | null }

async function pageOf(client: Client, path: string, params: Record<string, unknown>): Promise<Page> {
  const { status, body, text } = await client.get(path + query(params))
  if (status !== 200) throw new Error(`${status}: ${text}`)
  return body
}

async function walk(
  client: Client,
  path: string,
  way: 'after' | 'before',
  params: Record<string, unknown>,
): Promise<string[]> {
  const seen: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 100; pages++) {
    const page = await pageOf(client, path, { ...params, [way]: cursor })
    const ids = page.items.map(({ id }) => id)
    if (way === 'after') seen.push(...ids)
    else seen.unshift(...ids)
    if (!page.hasMore) return seen
    if (page.cursor === null) throw new Error('there is more, but no cursor')
    cursor = page.cursor
  }
  throw new Error('the walk does not end')
}

const sorts = [
  'id:asc',
  'id:desc',
  'rank:asc',
  'rank:desc',
  'title:asc,rank:desc',
  'rank:desc,title:asc,id:desc',
  'createdAt:desc',
  'rank:asc,title:desc',
]

describeServer('cursors', { config }, (server) => {
  beforeAll(async () => {
    for (const table of [base, twins, spaceOf('x'), spaceOf('y')])
      expect((await server.service.post(`${table}/batch`, { inserts: rows })).status).toBe(200)
    const inserts = rows.map((row, i) => ({ ...row, ownerId: i % 2 === 0 ? 'alice' : 'bob' }))
    expect((await server.service.post(`${owned}/batch`, { inserts })).status).toBe(200)
  })

  const cursorOf = async (params: Record<string, unknown> = { after: '', limit: 5 }, path = base): Promise<string> =>
    (await pageOf(server.anonymous, path, params)).cursor ?? ''

  for (const sort of sorts)
    for (const limit of [1, 2, 4, 7, 23, 24])
      test(`[DB-CURSOR-1, DB-CURSOR-2, DB-CURSOR-3] ${sort} in pages of ${limit}, forwards and backwards`, async () => {
        const all = (await pageOf(server.anonymous, base, { sort, limit: 100 })).items.map(({ id }) => id)
        expect(all.length).toBe(23)
        expect(await walk(server.anonymous, base, 'after', { sort, limit })).toEqual(all)
        expect(await walk(server.anonymous, base, 'before', { sort, limit })).toEqual(all)
      })

  test('[DB-CURSOR-1] a filter applies to every page', async () => {
    const filter = [['rank', '==', 1]]
    const all = (await pageOf(server.anonymous, base, { filter })).items.map(({ id }) => id)
    expect(all.length).toBeGreaterThan(3)
    expect(await walk(server.anonymous, base, 'after', { filter, limit: 2 })).toEqual(all)
  })

  test('[DB-CURSOR-2] a before page contains the rows before the cursor, in sort order', async () => {
    const last = await pageOf(server.anonymous, base, { before: '', limit: 4 })
    expect(last.items.map(({ id }) => id)).toEqual(['i20', 'i21', 'i22', 'i23'])
    const previous = await pageOf(server.anonymous, base, { before: last.cursor, limit: 4 })
    expect(previous.items.map(({ id }) => id)).toEqual(['i16', 'i17', 'i18', 'i19'])
    expect(previous.hasMore).toBe(true)
  })

  test('[DB-CURSOR-4] a record id can be used as a cursor', async () => {
    const after = await pageOf(server.anonymous, base, { after: 'i05', limit: 2 })
    expect(after.items.map(({ id }) => id)).toEqual(['i06', 'i07'])
    const before = await pageOf(server.anonymous, base, { before: 'i05', limit: 2 })
    expect(before.items.map(({ id }) => id)).toEqual(['i03', 'i04'])
    const start = await pageOf(server.anonymous, base, { before: 'i01' })
    expect(start.items).toEqual([])
    expect(start.hasMore).toBe(false)
    const end = await pageOf(server.anonymous, base, { after: 'i23' })
    expect(end.items).toEqual([])
    expect(end.hasMore).toBe(false)
  })

  test('[DB-CURSOR-4] a record id marks its position in the requested sort', async () => {
    const sort = 'rank:desc,title:asc'
    const all = (await pageOf(server.anonymous, base, { sort })).items.map(({ id }) => id)
    for (const at of [0, 4, 11, 22]) {
      const after = await pageOf(server.anonymous, base, { sort, after: all[at], limit: 3 })
      expect(after.items.map(({ id }) => id)).toEqual(all.slice(at + 1, at + 4))
      const before = await pageOf(server.anonymous, base, { sort, before: all[at], limit: 3 })
      expect(before.items.map(({ id }) => id)).toEqual(all.slice(Math.max(0, at - 3), at))
    }
  })

  test('[DB-CURSOR-4] an unknown id and an unreadable one get the same error', async () => {
    const hidden = await server.as('alice').get(owned + query({ after: 'i02' }))
    const unknown = await server.as('alice').get(owned + query({ after: 'i99' }))
    expectRefusal(hidden, 400, 'after')
    expectRefusal(unknown, 400, 'after')
    expect(hidden.text.replaceAll('i02', 'X')).toBe(unknown.text.replaceAll('i99', 'X'))
    expectRefusal(await server.anonymous.get(base + query({ before: 'i99' })), 400, 'before')
    expectRefusal(await server.anonymous.get(base + query({ after: 'not an id!' })), 400, 'after')
  })

  test('[DB-CURSOR-5] a cursor is valid only for its sort', async () => {
    const cursor = await cursorOf({ sort: 'rank:asc', after: '', limit: 5 })
    for (const sort of [undefined, 'rank:desc', 'title:asc', 'rank:asc,title:asc'])
      expectRefusal(await server.anonymous.get(base + query({ sort, after: cursor })), 400, 'after')
    expect((await server.anonymous.get(base + query({ sort: 'rank:asc', after: cursor }))).status).toBe(200)
  })

  test('[DB-CURSOR-5] a cursor is valid only for its direction', async () => {
    expectRefusal(await server.anonymous.get(base + query({ before: await cursorOf() })), 400, 'before')
    expectRefusal(
      await server.anonymous.get(base + query({ after: await cursorOf({ before: '', limit: 5 }) })),
      400,
      'after',
    )
  })

  test('[DB-CURSOR-5] a cursor is valid only for its table', async () => {
    expectRefusal(await server.anonymous.get(twins + query({ after: await cursorOf() })), 400, 'after')
    expectRefusal(await server.anonymous.get(spaceOf('x') + query({ after: await cursorOf() })), 400, 'after')
  })

  test('[DB-CURSOR-6] a truncated or forged cursor is refused', async () => {
    const cursor = await cursorOf()
    const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = [
      cursor.slice(0, -1),
      cursor.slice(1),
      cursor.slice(0, 6),
      cursor + cursor,
      `${cursor}!`,
      cursor.toUpperCase(),
      ` ${cursor}x`,
      '.',
      '..',
      '.e30',
      `.${encoded(null)}`,
      `.${encoded([])}`,
      `.${encoded({})}`,
      encoded(['i05']),
      `.${encoded(['i05'])}`,
      `.${encoded({ sort: 'id:asc', values: ['i05'] })}`,
      '%',
      'null',
      '[]',
      '{}',
      'x'.repeat(5000),
      "' OR 1=1--",
      '\0',
      '\u{1F600}',
    ]
    for (const text of forged) {
      const answer = await server.anonymous.get(base + query({ after: text }))
      expect([text, answer.status]).toEqual([text, 400])
      expectRefusal(answer, 400, 'after')
    }
  })

  test('[DB-CURSOR-6] a cursor with one changed character is refused', async () => {
    const cursor = await cursorOf({ sort: 'rank:desc', after: '', limit: 5 })
    for (let at = 0; at < cursor.length; at++) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
      const answer = await server.anonymous.get(base + query({ sort: 'rank:desc', after: changed }))
      expect([at, answer.status]).toEqual([at, 400])
    }
  })

  test('[DB-CURSOR-1] a cursor survives a restart', async () => {
    const cursor = await cursorOf()
    await server.restart()
    const page = await pageOf(server.anonymous, base, { after: cursor, limit: 2 })
    expect(page.items.map(({ id }) => id)).toEqual(['i06', 'i07'])
  })

  test('[DB-CURSOR-8] a cursor of another caller returns only rows that the caller may read', async () => {
    const service = await pageOf(server.service, owned, { after: '', limit: 6 })
    const page = await pageOf(server.as('bob'), owned, { after: service.cursor, limit: 100 })
    expect(page.items.map(({ id }) => id)).toEqual(
      rows.map(({ id }) => id).filter((id, i) => i % 2 === 1 && id > 'i06'),
    )
    expectRefusal(await server.anonymous.get(owned + query({ after: service.cursor })), 401)
  })

  test('[DB-NS-8] a cursor of one instance returns nothing of another', async () => {
    await server.service.delete(`${spaceOf('y')}/i07`)
    const { cursor } = await pageOf(server.anonymous, spaceOf('x'), { after: '', limit: 5 })
    const answer = await server.anonymous.get(spaceOf('y') + query({ after: cursor }))
    if (answer.status === 200) expect(answer.text).not.toContain('"i07"')
    else expectRefusal(answer, 400, 'after')
  })

  test('[DB-CURSOR-1] a cursor stays valid when its row is deleted', async () => {
    for (const row of [{ id: 'z1' }, { id: 'z2' }, { id: 'z3' }]) await server.anonymous.post(twins, row)
    const page = await pageOf(server.anonymous, twins, { after: 'i23', limit: 1 })
    expect(page.items.map(({ id }) => id)).toEqual(['z1'])
    await server.anonymous.delete(`${twins}/z1`)
    const next = await pageOf(server.anonymous, twins, { after: page.cursor, limit: 10 })
    expect(next.items.map(({ id }) => id)).toEqual(['z2', 'z3'])
  })

  test('[DB-CURSOR-1] a cursor keeps its position when its row changes', async () => {
    const page = await pageOf(server.anonymous, twins, { sort: 'rank:asc', after: '', limit: 12 })
    const last = page.items.at(-1)?.id ?? ''
    const rest = await pageOf(server.anonymous, twins, { sort: 'rank:asc', after: page.cursor })
    await server.anonymous.patch(`${twins}/${last}`, { rank: -100 })
    const again = await pageOf(server.anonymous, twins, { sort: 'rank:asc', after: page.cursor })
    expect(again.items.map(({ id }) => id)).toEqual(rest.items.map(({ id }) => id))
  })

  test('[DB-CURSOR-1] long texts with unusual characters produce valid cursors', async () => {
    const titles = ['\u{1F600}'.repeat(300), '"quoted"\\', 'ä'.repeat(900), '', 'line\nbreak', 'x'.repeat(1000)]
    const table = spaceOf('odd')
    for (const [i, title] of titles.entries())
      expect((await server.anonymous.post(table, { id: `o${i}`, title })).status).toBe(201)
    const all = (await pageOf(server.anonymous, table, { sort: 'title:desc' })).items.map(({ id }) => id)
    expect(await walk(server.anonymous, table, 'after', { sort: 'title:desc', limit: 1 })).toEqual(all)
    expect(await walk(server.anonymous, table, 'before', { sort: 'title:desc', limit: 1 })).toEqual(all)
  })
})
