/** Nodes that share a PostgreSQL, as their callers see them: starting together, totals, and an outage. */
import { expect, test } from 'bun:test'
import { openPostgres } from '../../../../scripts/servers/postgres.ts'
import { type PostgresPrograms, providePostgres } from '../../../../scripts/servers/programs.ts'
import { query } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { createDatabase } from '../harness/databases.ts'
import { untilStatus } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { times } from '../harness/times.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { title: { type: 'text' }, n: { type: 'number' } },
          indexes: [{ fields: ['n'] }],
          search: ['title'],
          access: open,
        },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { n: { type: 'number' } }, access: open } },
    },
  },
}

const closing = closeAfterEach()

async function startNode(databaseUrl: string): Promise<TestServer> {
  return closing(await startServer({ config, settings: { databaseUrl } }), (node) => node.close())
}

async function newDatabase(): Promise<string> {
  const database = await createDatabase(process.env.PLINTH_TEST_DATABASE_URL as string)
  return closing(database, ({ drop }) => drop()).url
}

if (process.env.PLINTH_TEST_DATABASE_URL) {
  test('[DB-START-1] five nodes that start at once on an empty database all serve it', async () => {
    const url = await newDatabase()
    const nodes = await Promise.all(Array.from({ length: 5 }, () => startNode(url)))
    /** Repeated while the server is too busy to answer the node in time; the key makes it one insert. */
    const insert = async (node: TestServer, n: number): Promise<number> => {
      const request = { body: { n }, headers: { 'Idempotency-Key': `insert ${n}` } }
      for (;;) {
        const { status } = await node.anonymous.request('POST', items, request)
        if (status !== 503) return status
      }
    }
    expect(await Promise.all(nodes.map(insert))).toEqual([201, 201, 201, 201, 201])
    for (const node of nodes) expect((await node.anonymous.get(`${items}/count`)).body.total).toBe(5)
  })

  test('[DB-COUNT-1] totals are exact on every node, whichever node writes', async () => {
    const url = await newDatabase()
    const nodes = await Promise.all([startNode(url), startNode(url)])
    const small = `${items}/count${query({ filter: JSON.stringify([['n', '<', 10]]) })}`
    const notes = '/api/db/space/one/tables/notes'
    for (let n = 0; n < 20; n++) {
      const [writer, reader] = n % 2 ? nodes : nodes.toReversed()
      await writer?.anonymous.post(items, { id: `i${n}`, n })
      await writer?.anonymous.post(notes, { n })
      expect((await reader?.anonymous.get(`${items}/count`))?.body.total).toBe(n + 1)
      expect((await reader?.anonymous.get(small))?.body.total).toBe(Math.min(n + 1, 10))
      expect((await reader?.anonymous.get(`${notes}/count`))?.body.total).toBe(n + 1)
      expect((await reader?.anonymous.get('/api/db/space/two/tables/notes/count'))?.body.total).toBe(0)
    }
    await nodes[0].anonymous.patch(`${items}/i3`, { n: 100 })
    await nodes[1].anonymous.delete(`${items}/i4`)
    for (const node of nodes) expect((await node.anonymous.get(small)).body.total).toBe(8)
  })

  test('[DB-COUNT-1] totals stay exact where few changes of large records are more than is followed', async () => {
    const url = await newDatabase()
    const [writer, reader] = await Promise.all([startNode(url), startNode(url)])
    const small = `${items}/count${query({ filter: JSON.stringify([['n', '<', 10]]) })}`
    const title = 'x '.repeat(150_000)
    expect((await writer.anonymous.post(items, { id: 'large', n: 0, title })).status).toBe(201)
    expect((await reader.anonymous.get(small)).body.total).toBe(1)
    for (const [value, total] of [
      [1, 0],
      [-1, 1],
    ] as const) {
      const updates = times(10, () => ({ id: 'large', data: { n: { $op: 'increment', value } } }))
      expect((await writer.anonymous.post(`${items}/batch`, { updates })).status).toBe(200)
      expect((await reader.anonymous.get(small)).body.total).toBe(total)
      expect((await writer.anonymous.post(items, { n: 99 })).status).toBe(201)
      expect((await reader.anonymous.get(small)).body.total).toBe(total)
    }
  })

  test('[SYS-2, DB-INSERT-1] without PostgreSQL requests are refused, and no acknowledged write is lost', async () => {
    const postgres = closing(await openPostgres(providePostgres() as PostgresPrograms), ({ remove }) => remove())
    const node = await startNode(postgres.url)
    const insert = (id: string) => node.anonymous.post(items, { id, n: 1 })
    const before = await Promise.all(Array.from({ length: 20 }, (_, n) => insert(`before${n}`)))
    expect(before.every(({ status }) => status === 201)).toBe(true)
    const during = Array.from({ length: 40 }, (_, n) => insert(`during${n}`))
    await postgres.crash()
    const answers = await Promise.all(during)
    for (const { status } of answers) expect([201, 503]).toContain(status)
    const refused = await insert('refused')
    expect(expectRefusal(refused, 503)).toMatchObject({ slug: 'unavailable' })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect((await node.anonymous.get(items)).status).toBe(503)
    expect((await node.anonymous.get('/api/health')).status).toBe(503)

    await postgres.start()
    await untilStatus(200, node, '/api/health')
    for (let n = 0; n < 20; n++) expect((await node.anonymous.get(`${items}/before${n}`)).status).toBe(200)
    for (const [n, { status }] of answers.entries())
      if (status === 201) expect((await node.anonymous.get(`${items}/during${n}`)).status).toBe(200)
    expect((await node.anonymous.get(`${items}/refused`)).status).toBe(404)
    expect((await insert('after')).status).toBe(201)
    expect(node.logged()).not.toContain(new URL(postgres.url).password)
  })
}
