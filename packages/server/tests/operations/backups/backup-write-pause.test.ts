/** The pause of writes during which a backup records its state: reads continue, and a pause expires. */
import { expect, test } from 'bun:test'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const items = '/api/db/shared/tables/items'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: { shared: { tables: { items: { access: open } } } },
  rateLimits: { db: { requests: 100_000 } },
  serviceKeys: [
    { name: 'backup', key: 'backup-key-0123456789', scopes: ['system:backup:*:hold'] },
    { name: 'metrics', key: 'metrics-key-0123456789', scopes: ['system:metrics:*:read'] },
  ],
}

describeServer('the pause of writes for a backup', { config }, (server) => {
  const pauseWrites = () => server.service.request('POST', '/api/backup/hold')
  const isEmbedded = (): boolean => server.settings().databaseUrl === null

  test('[BACKUP-4] delays writes but not reads until it is released', async () => {
    if (!isEmbedded()) return expectRefusal(await pauseWrites(), 404)
    await server.anonymous.post(items, { id: 'there' })
    const { status, body } = await pauseWrites()
    expect(status).toBe(200)
    let answered = 0
    const writes = Array.from({ length: 30 }, async (_, n) => {
      const answer = await server.anonymous.post(items, { id: `w${n}` })
      answered++
      return answer.status
    })
    for (let n = 0; n < 20; n++) expect((await server.anonymous.get(`${items}/there`)).status).toBe(200)
    expect((await server.anonymous.get(`${items}/count`)).body.total).toBe(1)
    expect(answered).toBe(0)
    expect((await server.service.delete(`/api/backup/hold/${body.id}`)).body).toEqual({ ok: true })
    expect(new Set(await Promise.all(writes))).toEqual(new Set([201]))
    expectRefusal(await server.service.delete(`/api/backup/hold/${body.id}`), 404)
  })

  test('[BACKUP-4, BACKUP-12] expires; a later release is 404', async () => {
    if (!isEmbedded()) return expectRefusal(await server.service.delete('/api/backup/hold/x'), 404)
    const { body } = await pauseWrites()
    expect((await server.anonymous.post(items, { id: 'waited' })).status).toBe(201)
    expectRefusal(await server.service.delete(`/api/backup/hold/${body.id}`), 404)
  })

  test('[BACKUP-12] requires a service key with the scope for backups', async () => {
    const answer = await server.withKey('backup-key-0123456789').request('POST', '/api/backup/hold')
    expect(answer.status).toBe(isEmbedded() ? 200 : 404)
    if (isEmbedded()) await server.service.delete(`/api/backup/hold/${answer.body.id}`)
    expectRefusal(await server.withKey('metrics-key-0123456789').request('POST', '/api/backup/hold'), 401)
  })

  test('[BACKUP-12] is granted to one of forty concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, pauseWrites))
    const statuses = answers.map(({ status }) => status)
    if (!isEmbedded()) return expect(new Set(statuses)).toEqual(new Set([404]))
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(39)
    const id = answers.find(({ status }) => status === 200)?.body.id
    expect((await server.service.delete(`/api/backup/hold/${id}`)).status).toBe(200)
  })
})
