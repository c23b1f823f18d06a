/** The moment of a backup: writes wait, reads do not, one at a time, and never for long. */
import { expect, test } from 'bun:test'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

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

describeServer('the moment of a backup', { config }, (server) => {
  const hold = () => server.service.request('POST', '/api/backup/hold')
  const isEmbedded = (): boolean => server.settings().databaseUrl === null

  test('[BACKUP-4] writes wait and reads do not, until it is given back', async () => {
    if (!isEmbedded()) return expectRefusal(await hold(), 404)
    await server.anonymous.post(items, { id: 'there' })
    const { status, body } = await hold()
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

  test('[BACKUP-4, BACKUP-12] it is over by itself, and says so', async () => {
    if (!isEmbedded()) return expectRefusal(await server.service.delete('/api/backup/hold/x'), 404)
    const { body } = await hold()
    expect((await server.anonymous.post(items, { id: 'waited' })).status).toBe(201)
    expectRefusal(await server.service.delete(`/api/backup/hold/${body.id}`), 404)
  })

  test('[BACKUP-12] a key for backups alone may ask for it, and another may not', async () => {
    const answer = await server.withKey('backup-key-0123456789').request('POST', '/api/backup/hold')
    expect(answer.status).toBe(isEmbedded() ? 200 : 404)
    if (isEmbedded()) await server.service.delete(`/api/backup/hold/${answer.body.id}`)
    expectRefusal(await server.withKey('metrics-key-0123456789').request('POST', '/api/backup/hold'), 401)
  })

  test('[BACKUP-12] of many at once one has it', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, hold))
    const statuses = answers.map(({ status }) => status)
    if (!isEmbedded()) return expect(new Set(statuses)).toEqual(new Set([404]))
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(39)
    const id = answers.find(({ status }) => status === 200)?.body.id
    expect((await server.service.delete(`/api/backup/hold/${id}`)).status).toBe(200)
  })
})
