/** How many devices a message would reach, for administrators. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { openFcm } from '../harness/push/fcm.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const unlimited = { requests: 1_000_000 }
const fcm = openFcm()
afterAll(() => fcm.close())
const config = { push: { fcm: fcm.config }, rateLimits: { push: unlimited, auth: unlimited, signin: unlimited } }

describeServer('the audience of a message', { config }, (server) => {
  let editor: TestAdministrator
  beforeAll(async () => {
    editor = await openAdministrator(server, 'editor')
    for (const [user, deviceId, platform] of [
      ['ann', 'phone', 'android'],
      ['ann', 'tablet', 'ios'],
      ['bob', 'phone', 'android'],
    ] as const)
      expect(
        (await server.as(user).post('/api/push/register', { deviceId, token: `token-${user}-${deviceId}`, platform }))
          .status,
      ).toBe(200)
    await server.as('ann').post('/api/push/topic/subscribe', { topic: 'news' })
  })
  const audience = async (query = '') => (await editor.client.get(`/api/push-audience${query}`)).body

  test('[PUSH-AUDIENCE-1] devices of a user, of a topic and of everyone are counted by platform', async () => {
    const providers = { fcm: true, web: false }
    expect(await audience()).toEqual({ devices: 3, isMore: false, platforms: { android: 2, ios: 1 }, providers })
    expect(await audience('?userId=ann')).toMatchObject({ devices: 2, platforms: { android: 1, ios: 1 } })
    expect(await audience('?topic=news')).toMatchObject({ devices: 2 })
    expect(await audience('?userId=nobody')).toMatchObject({ devices: 0, platforms: {} })
    expect(await audience('?topic=none')).toMatchObject({ devices: 0 })
  })

  test('[PUSH-AUDIENCE-1] a topic that cannot be, and two kinds of recipients, are refused', async () => {
    expectRefusal(await editor.client.get('/api/push-audience?topic=a%20b'), 400)
    expectRefusal(await editor.client.get('/api/push-audience?topic=a&userId=b'), 400)
  })
})
