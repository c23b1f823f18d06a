/** Searches of instances: by the beginning and the middle of an id, in pages, and those in use. */
import { beforeAll, expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const unlimited = { requests: 10_000_000 }
const table = { schema: { n: { type: 'number' } }, access: open } as const
const config = {
  databases: {
    shared: { tables: { notes: table } },
    space: { instance: true, access: () => true, tables: { tasks: table, notes: table } },
  },
  dashboard: { roles: { one: ['db:table:tasks:read'] } },
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited },
} as const
/** Names that need encoding in file names, and many that do not. */
const special = ['Acme', 'acme', 'ACME.corp', 'a'.repeat(128), '-', '_.', 'x.y']
const many = Array.from({ length: 130 }, (_, at) => `tenant-${String(at).padStart(3, '0')}`)
const ids = [...special, ...many].sort()

describeServer('instances', { config }, (server) => {
  let owner: TestAdministrator
  beforeAll(async () => {
    owner = await openAdministrator(server, 'owner')
    for (const id of ids) {
      const name = id.startsWith('tenant') && Number(id.slice(-1)) % 2 ? 'notes' : 'tasks'
      await server.service.post(`/api/db/space/${id}/tables/${name}`, { n: 1 })
    }
  })
  const search = (query: Readonly<Record<string, string>>, { client } = owner) =>
    client.get(`/api/instances/space?${new URLSearchParams(query)}`)
  const found = async (query: Readonly<Record<string, string>>): Promise<string[]> =>
    (await search(query)).body.instances.map(({ id }: { id: string }) => id)

  test('[DASH-42] pages have every instance once, by id', async () => {
    const walked: string[] = []
    for (let after = '', hasMore = true; hasMore; after = walked.at(-1) ?? '') {
      const { body } = await search({ after, limit: '20' })
      expect(body.instances.length).toBeLessThanOrEqual(20)
      walked.push(...body.instances.map(({ id }: { id: string }) => id))
      hasMore = body.hasMore
    }
    expect(walked).toEqual(ids)
  })

  test('[DASH-42] texts are searched at the beginning or anywhere, with case', async () => {
    expect(await found({ text: 'tenant-01' })).toEqual(many.slice(10, 20))
    expect(await found({ text: 'acme' })).toEqual(['acme'])
    expect(await found({ text: 'A' })).toEqual(['ACME.corp', 'Acme'])
    expect(await found({ text: '-05', match: 'contains' })).toEqual(many.slice(50, 60))
    expect(await found({ text: '.', match: 'contains' })).toEqual(['ACME.corp', '_.', 'x.y'])
    expect(await found({ text: 'tenant-01', after: 'tenant-014' })).toEqual(many.slice(15, 20))
    expect(await found({ text: 'none' })).toEqual([])
  })

  test('[DASH-42] an instance that was only read is not found', async () => {
    expect((await server.service.get('/api/db/space/visited/tables/tasks')).status).toBe(200)
    expect(await found({ text: 'visited' })).toEqual([])
  })

  test('[DASH-42] where each instance has a file, the last write and those in use are known', async () => {
    await server.service.post('/api/db/space/x.y/tables/tasks', { n: 2 })
    const { instances, recent } = (await search({ text: 'x.y' })).body
    if (recent.length === 0) expect(instances).toEqual([{ id: 'x.y', writtenAt: null }])
    else {
      expect(recent[0].id).toBe('x.y')
      expect(Date.parse(instances[0].writtenAt)).toBeGreaterThan(Date.now() - 60_000)
    }
  })

  test('[DASH-42] it needs the scope of all tables, and a dynamic namespace', async () => {
    expectRefusal(await search({}, await openAdministrator(server, 'one')), 403)
    for (const name of ['shared', 'none', '..%2f..'])
      expectRefusal(await owner.client.get(`/api/instances/${name}`), 404)
    for (const query of [{ text: '../x' }, { text: '%' }, { after: 'a b' }, { match: 'regex' }, { limit: '0' }])
      expectRefusal(await search(query as Record<string, string>), 400)
  })
})
