/** The change log of a release on SQLite whose inserts referred to their rows by id. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { referById } from '../harness/records/earlier-release.ts'
import { changeOf, changesIn, watch } from '../harness/records/live.ts'
import { startServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const schema = { title: { type: 'string' }, rank: { type: 'number' } } as const
const config = { databases: { shared: { tables: { items: { schema, access: open } } } } }

test('[DB-LOG-14] after the update it has the same changes', async () => {
  const server = await startServer({ config }, engines[0])
  try {
    await server.anonymous.post(items, { id: 'a', title: 'first' })
    await server.anonymous.patch(`${items}/a`, { rank: 9 })
    const { subscribed, close } = await watch(server.url)
    await close()
    for (const id of ['d', 'e', 'f', 'h']) await server.anonymous.post(items, { id, rank: 1 })
    await server.anonymous.patch(`${items}/e`, { rank: 2 })
    await server.anonymous.patch(`${items}/e`, { rank: 3 })
    for (const id of ['f', 'h']) await server.anonymous.delete(`${items}/${id}`)
    await server.anonymous.post(items, { id: 'h', rank: 4 })
    const changesSince = async (): Promise<unknown[]> => {
      const again = await watch(server.url, { subscribe: { since: subscribed.cursor } })
      expect(again.subscribed).toMatchObject({ recovered: true })
      const changes: unknown[] = []
      while (changes.length < 9) changes.push(...changesIn([await again.next()]).map(changeOf))
      await again.close()
      return changes
    }
    const before = await changesSince()
    await referById(server, ['shared'], 'items')
    await server.restart()
    expect(await changesSince()).toEqual(before)
  } finally {
    await server.close()
  }
})
