/** A killed server: its successor completes the FCM subscriptions, and unsent messages are not logged. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'
import { openFcm } from '../harness/push/fcm.ts'

const configOf = (push: object): string =>
  `export default ${JSON.stringify({ push, rateLimits: { push: { requests: 1_000_000 } } })}`

for (const engine of engines)
  describe(`push after a crash on ${engine.name}`, () => {
    const fcm = openFcm()
    let server: SpawnedServer

    beforeAll(async () => {
      server = await spawnServer(configOf({}), engine)
    })
    afterAll(async () => {
      await server.remove()
      await fcm.close()
    })

    const post = async (userId: string, path: string, body: object) =>
      server.anonymous.post(`/api/push/${path}`, body, { authorization: `Bearer ${await server.token(userId)}` })
    const register = (userId: string, deviceId: string, token: string) =>
      post(userId, 'register', { deviceId, token, platform: 'android' })

    test('[PUSH-TOPIC-1, PUSH-9] the next server subscribes registered devices at FCM', async () => {
      for (const token of ['first', 'second']) expect((await register('ann', 'phone', token)).status).toBe(200)
      expect((await register('bob', 'phone', 'third')).status).toBe(200)
      expect((await post('bob', 'unregister', { token: 'third' })).status).toBe(200)
      await server.kill()
      writeFileSync(join(server.dataFolder, '../plinth.config.ts'), configOf({ fcm: fcm.config }))
      await server.start()
      await fcm.until(() => fcm.membersOf('all').includes('second'))
      expect(fcm.membersOf('all')).toEqual(['second'])
    })

    test('[PUSH-LOG-1] an interrupted job logs only finished messages and keeps every device', async () => {
      const userIds = Array.from({ length: 40 }, (_, at) => `user-${at}`)
      for (const userId of userIds) await register(userId, 'phone', `token of ${userId}`.replaceAll(' ', '-'))
      const tokens = userIds.map((userId) => `token-of-${userId}`)
      for (const token of tokens) fcm.script(token, () => new Promise<Response>(() => {}))
      const message = { userIds, title: 'Hello', body: 'World' }
      const sending = server.service.post('/api/push/send-many', message).catch((error: Error) => error)
      await fcm.until(() => tokens.filter((token) => fcm.attempts(token) > 0).length === 16)
      await server.kill()
      expect(await sending).toBeInstanceOf(Error)
      for (const token of tokens) fcm.script(token)
      await server.start()
      expect((await server.service.get('/api/push/logs')).body).toEqual({ logs: [] })
      const again = await server.service.post('/api/push/send-many', message)
      expect(again.body).toEqual({ ok: true, sent: 40, failed: 0 })
      expect((await server.service.get('/api/push/logs')).body.logs).toHaveLength(40)
    })
  })
