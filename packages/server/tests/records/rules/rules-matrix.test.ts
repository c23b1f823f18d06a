/** Every kind of caller, rule and operation, compared with a model of the access rules. */
import { expect, test } from 'bun:test'
import { type Answer, type Client, query } from '../../harness/client.ts'
import {
  brokenKinds,
  createModel,
  kinds,
  type Model,
  matrixTables,
  rows,
  shapes,
} from '../../harness/records/rule-kinds.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { type Dump, describeServer, type TestServer } from '../../harness/server.ts'

const callers = { anonymous: null, alice: 'alice', bob: 'bob', service: null } as const
type CallerName = keyof typeof callers

const clientOf = (server: TestServer, caller: CallerName): Client =>
  caller === 'anonymous' ? server.anonymous : caller === 'service' ? server.service : server.as(caller)

const idsOf = ({ body }: Answer): string[] => body.items.map(({ id }: { id: string }) => id)

const at = '2026-01-01T00:00:00.000Z'
const inserts = Object.entries(rows).map(([id, row]) => ({
  id,
  title: `row ${id}`,
  rank: 1,
  ...row,
  createdAt: at,
  updatedAt: at,
}))

/** Restores every row and deletes the ids in `added`, which the last write may have inserted. */
async function restore(server: TestServer, path: string, added: readonly string[] = []): Promise<void> {
  const { status, text } = await server.service.post(`${path}/batch?upsert=true`, { inserts, deletes: added })
  if (status !== 200) throw new Error(text)
}

async function checkReads(client: Client, path: string, model: Model): Promise<void> {
  for (const [id, row] of [...Object.entries(rows), ['absent', null] as const])
    expect([id, (await client.get(`${path}/${id}`)).status]).toEqual([id, model.get(row)])
  if (model.list !== 200) {
    for (const part of ['', '/count', '/search?q=row', '?after=', '?before=&sort=rank:desc', '?filter=%5B%5D'])
      expectRefusal(await client.get(path + part), model.list)
    return
  }
  const { visible } = model
  const list = await client.get(path)
  expect(idsOf(list)).toEqual([...visible])
  expect(list.body.total).toEqual(visible.length)
  expect((await client.get(`${path}/count`)).body.total).toBe(visible.length)
  const found = await client.get(`${path}/search${query({ q: 'row' })}`)
  expect(idsOf(found).sort()).toEqual([...visible])
  expect(found.body.total).toEqual(visible.length)
  const forward = await client.get(path + query({ after: '', limit: 2 }))
  expect(idsOf(forward)).toEqual(visible.slice(0, 2))
  expect(forward.body.hasMore).toEqual(visible.length > 2)
  const backward = await client.get(path + query({ before: '', limit: 2 }))
  expect(idsOf(backward)).toEqual(visible.slice(-2))
}

async function checkWrites(server: TestServer, client: Client, path: string, model: Model): Promise<void> {
  /** The table before the first refusal since the last successful write. */
  let untouched: Readonly<Record<string, Dump>> | null = null
  const expectUnchanged = async (): Promise<void> => {
    if (untouched) expect(await server.dump(path)).toEqual(untouched)
    untouched = null
  }
  /** A refusal must not change the table; a successful write is undone. */
  const check = async (expected: number, send: () => Promise<Answer>): Promise<void> => {
    if (expected < 400) await expectUnchanged()
    else untouched ??= await server.dump(path)
    const answer = await send()
    if (expected >= 400) return void expectRefusal(answer, expected)
    if (answer.status !== expected) throw new Error(`expected ${expected}, got ${answer.status}: ${answer.text}`)
    await restore(server, path, expected === 201 ? ['new'] : [])
  }
  const taken = { ownerId: 'bob', published: false }
  for (const [id, row] of Object.entries(rows)) {
    await check(model.change(row, row), () => client.patch(`${path}/${id}`, { rank: 2 }))
    await check(model.change(row, taken), () => client.patch(`${path}/${id}`, taken))
    await check(model.upsert(row, row), () => client.post(`${path}?upsert=true`, { id, rank: 2 }))
    await check(model.upsert(row, taken), () => client.post(`${path}?upsert=true`, { id, ...taken }))
    await check(model.change(row, null), () => client.delete(`${path}/${id}`))
    await check(model.insert(row), () => client.post(path, { id: 'new', ...row }))
    await check(model.upsert(null, row), () => client.post(`${path}?upsert=true`, { id: 'new', ...row }))
  }
  await check(model.change(null, null), () => client.patch(`${path}/absent`, { rank: 2 }))
  await check(model.change(null, null), () => client.delete(`${path}/absent`))
  await expectUnchanged()
}

async function checkTable(server: TestServer, name: string, shape: string, caller: CallerName): Promise<void> {
  const path = `/api/db/shared/tables/${name}_${shape}`
  const kind = kinds[name] ?? brokenKinds[name]
  if (!kind) throw new Error(`unknown rule ${name}`)
  const model = createModel(kind, shape, { user: callers[caller], service: caller === 'service' })
  const client = clientOf(server, caller)
  await restore(server, path)
  await checkReads(client, path, model)
  await checkWrites(server, client, path, model)
}

const config = { databases: { shared: { tables: matrixTables } } }

for (const mode of ['development', 'release'] as const)
  describeServer(`rules in ${mode} mode`, { config, mode }, (server) => {
    /** Tables of different shapes are independent, so they are checked in parallel. */
    const checkShapes = (name: string, caller: CallerName, some: readonly string[]): void =>
      void test(`[RULE-1, RULE-2, RULE-3, RULE-4, RULE-5, RULE-7, RULE-8, RULE-11, RULE-12, RULE-13, KEY-3, DB-UPSERT-6, DB-UPSERT-7] ${name}: ${caller}`, async () => {
        await Promise.all(some.map((shape) => checkTable(server, name, shape, caller)))
      })

    // Release mode behaves alike, so some of the kinds suffice.
    for (const name of Object.keys(kinds).filter(
      (name) => mode === 'development' || ['absent', 'own'].includes(name),
    )) {
      for (const caller of ['anonymous', 'alice', 'bob'] as const) checkShapes(name, caller, Object.keys(shapes))
      checkShapes(name, 'service', ['all'])
    }
    // Broken rules differ only in their error.
    for (const name of Object.keys(brokenKinds))
      for (const caller of ['anonymous', 'alice'] as const) checkShapes(name, caller, ['all'])
  })
