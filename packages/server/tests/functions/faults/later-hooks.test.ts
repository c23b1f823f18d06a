/** Hooks that run together: one that never returns is named, not the one that was called first. */
import { afterAll, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { openFunctionProject, untilHostReady } from '../../harness/functions.ts'
import { describeServer } from '../../harness/server.ts'

const project = openFunctionProject(`
export const ready = rpc({ caller: 'service' }, () => true)
export const waits = before('shared.waited', ['insert'], () => {})
export const hangs = before('shared.waited', ['insert'], ({ row }) => row.title && new Promise(() => {}))
export const rests = before('shared.rested', ['insert'], () => {})
export const spins = before('shared.rested', ['insert'], async ({ row }) => { await null; if (row.title) for (;;); })
export const sits = before('shared.left', ['insert'], () => {})
export const leaves = before('shared.left', ['insert'], ({ row }) => { if (row.title) process.exit(1) })
`)
afterAll(() => project.remove())

const table = { schema: { title: { type: 'string' } }, access: open } as const
const config = { databases: { shared: { tables: { waited: table, rested: table, left: table } } } }

describeServer('hooks after others', { config, settings: { projectFolder: project.folder } }, (server) => {
  const { service } = server
  const insert = (name: string, row: object) => service.post(`/api/db/shared/tables/${name}`, row)
  const find = async (name: string) =>
    (await service.get('/api/functions')).body.items.find((one: { name: string }) => one.name === name)

  const endless = [
    ['does not return', 'waited', 'waits', 'hangs', 500, 'hangs did not end within'],
    ['blocks its process', 'rested', 'rests', 'spins', 500, 'spins did not end within'],
    ['ends its process', 'left', 'sits', 'leaves', 503, 'The process of the function ended'],
  ] as const
  for (const [what, name, first, later, status, message] of endless)
    test(`[FN-21] a hook that ${what} is named, not the one before it`, async () => {
      // The process of the case before was killed; a hook's deadline includes the wait for the next one.
      await untilHostReady(service)
      expect((await insert(name, { title: 'x' })).status).toBe(status)
      const failed = await find(later)
      expect(failed).toMatchObject({ state: 'failing', calls: 1, failures: 1 })
      expect(failed.lastError.message).toContain(message)
      expect(await find(first)).toMatchObject({ failures: 0, lastError: null })
      const logged = server.logged().split('\n')
      expect(logged.filter((line) => line.includes('functions.failed') && line.includes(`"${later}"`))).toHaveLength(1)
      expect((await service.get(`/api/db/shared/tables/${name}`)).body.items).toEqual([])
    })

  test('[FN-21] of several rows, the hook that does not return is named while those of the others have', async () => {
    await untilHostReady(service)
    const { status } = await service.post('/api/db/shared/tables/waited/batch', { inserts: [{ title: 'x' }, {}] })
    expect(status).toBe(500)
    expect((await find('hangs')).failures).toBe(2)
    expect((await find('waits')).failures).toBe(0)
  })
})
