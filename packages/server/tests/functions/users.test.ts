/** `auth.onUser`: what happens to accounts reaches functions once, on every path and engine. */
import { afterAll, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { functionBackoffMaxMs } from '../../src/limits/function-jobs.ts'
import { open } from '../harness/config.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { watch } from '../harness/records/live.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { adminUsers, auth, newEmail, password, signUp } from '../harness/users/accounts.ts'
import { accountOf, openSignUpPaths } from '../harness/users/sign-up-paths.ts'

const project = openFunctionProject(`
export const gate = auth.beforeSignUp(({ email }) => {
  if (email?.startsWith('refused')) throw new HttpError(403, 'refused', 'Refused')
})
export const all = auth.onUser(['created', 'deleted', 'disabled'], async (given, ctx) => {
  if (given.user.displayName === 'retried' && given.attempt < 3) throw new Error('not yet')
  await ctx.service.db('shared').events.insert({ text: JSON.stringify(given) })
})
export const broken = auth.onUser(['disabled'], ({ user }) => {
  if (user.displayName === 'breaks') throw new Error('always')
})
`)
const signUps = await openSignUpPaths()
afterAll(async () => {
  project.remove()
  await signUps.close()
})

const table = { schema: { text: { type: 'string' } }, access: open } as const
const config = { ...signUps.config, databases: { shared: { tables: { events: table } } } }
const clock = manualClock(Date.now())
const settings = { ...signUps.settings, projectFolder: project.folder }
const eventsPath = '/api/db/shared/tables/events'

interface Event {
  readonly event: string
  readonly user: { readonly id: string; readonly email: string | null; readonly [field: string]: unknown }
  readonly change: { readonly id: string; readonly at: string }
  readonly attempt: number
}

/** The events so far. */
async function eventsOf(server: TestServer, id?: string): Promise<readonly Event[]> {
  await server.finishDue()
  const events = (await server.dump(eventsPath))[eventsPath]?.items.map(({ text }) => JSON.parse(text as string)) ?? []
  return id === undefined ? events : events.filter(({ user }) => user.id === id)
}
const namesOf = (events: readonly Event[]) => events.map(({ event }) => event)

describeServer('users', { config, settings, clock }, (server) => {
  for (const [name, path] of Object.entries(signUps.paths))
    test(`[FN-AUTH-12] ${name}: the creation is one event, an upgrade none`, async () => {
      const attempt = await path.prepare(server)
      const user = await accountOf(server, attempt, await attempt.run())
      const { id } = user
      expect(await eventsOf(server, id)).toEqual([
        {
          event: 'created',
          user: attempt.id === null ? user : expect.objectContaining({ id, isAnonymous: true, email: null }),
          change: { id: expect.any(String), at: expect.stringMatching(/^\d{4}-.*Z$/) },
          attempt: 1,
        },
      ])
      if (user.role === 'admin') await server.service.delete(`${adminUsers}/${id}`)
    })

  test('[FN-AUTH-12] disabling and deleting are events, in order; enabling and repeating are none', async () => {
    const { id } = (await signUp(server)).body.user
    const patch = (fields: object) => server.service.patch(`${adminUsers}/${id}`, fields)
    for (const fields of [
      { disabled: true },
      { disabled: true },
      { displayName: 'Ann' },
      { disabled: false },
      { disabled: true },
    ])
      expect((await patch(fields)).status).toBe(200)
    await server.service.delete(`${adminUsers}/${id}`)
    expect((await server.service.delete(`${adminUsers}/${id}`)).status).toBe(404)
    const events = await eventsOf(server, id)
    expect(namesOf(events)).toEqual(['created', 'disabled', 'disabled', 'deleted'])
    const [, disabled, , deleted] = events
    expect(disabled?.user).toMatchObject({ disabled: true, displayName: null })
    expect(deleted?.user).toMatchObject({ disabled: true, displayName: 'Ann' })
  })

  test('[FN-AUTH-12] a user of an event has no secrets', async () => {
    const { id } = (await signUp(server)).body.user
    const [event] = await eventsOf(server, id)
    const { body } = await server.service.get(`${adminUsers}/${id}`)
    expect(Object.keys(event?.user ?? {}).sort()).toEqual(Object.keys(body).sort())
    expect(JSON.stringify(event)).not.toMatch(/hash|argon|secret/i)
  })

  test('[FN-AUTH-12] a refused or failed change is no event', async () => {
    const before = (await eventsOf(server)).length
    expect((await signUp(server, `refused-${newEmail()}`)).status).toBe(403)
    const { email, id } = (await signUp(server)).body.user
    expect((await signUp(server, email)).status).toBe(409)
    expect((await server.service.post(adminUsers, { email, password })).status).toBe(409)
    expect((await server.service.patch(`${adminUsers}/unknown`, { disabled: true })).status).toBe(404)
    expect(namesOf(await eventsOf(server, id))).toEqual(['created'])
    expect((await eventsOf(server)).length - before).toBe(1)
  })

  test('[FN-AUTH-13] a failed run is repeated and keeps the later events of its user waiting', async () => {
    const input = { email: newEmail(), password, displayName: 'retried' }
    const { id } = (await server.service.post(adminUsers, input)).body.user
    await server.service.patch(`${adminUsers}/${id}`, { disabled: true, displayName: null })
    expect(await eventsOf(server, id)).toEqual([])
    for (let attempt = 2; attempt <= 3; attempt++) {
      await server.elapse(functionBackoffMaxMs)
      await server.finishDue()
    }
    const events = await eventsOf(server, id)
    expect(events.map(({ event, attempt }) => [event, attempt])).toEqual([
      ['created', 3],
      ['disabled', 1],
    ])
  })

  test('[FN-AUTH-13] a run that keeps failing is a job that can be found and canceled', async () => {
    const { id } = (await server.service.post(adminUsers, { email: newEmail(), password, displayName: 'breaks' })).body
      .user
    await server.service.patch(`${adminUsers}/${id}`, { disabled: true })
    expect(namesOf(await eventsOf(server, id))).toEqual(['created', 'disabled'])
    const [job] = (await server.service.get('/api/functions/jobs?queue=broken&status=failed')).body.items
    expect(job).toMatchObject({ function: 'broken', error: expect.stringContaining('always') })
    expect((await server.service.post(`/api/functions/jobs/${job.id}/cancel`, {})).status).toBe(200)
  })

  test('[FN-AUTH-12] the events are no table of the namespace', async () => {
    expect((await server.service.get('/api/db/shared/tables/_user_events')).status).toBe(404)
    const watching = watch(server.url, { channel: 'dblive:shared:_user_events', subscribe: null })
    expect(await watching.catch(({ message }) => message)).toBe('the socket was refused')
  })

  test('[FN-13] the list of functions has them', async () => {
    const { body } = await server.service.get('/api/functions')
    expect(body.items).toContainEqual(
      expect.objectContaining({ name: 'all', kind: 'onUser', trigger: 'after a user was created, deleted, disabled' }),
    )
  })
})

const bare = openFunctionProject(`
export const all = auth.onUser(['created'], ({ user }, ctx) => ctx.kv('events').set(user.id, true))
`)
afterAll(() => bare.remove())
const bareConfig = {
  kv: { events: {} },
  databases: { other: { tables: {} } },
  rateLimits: signUps.config.rateLimits,
}
describeServer('users without tables', { config: bareConfig, settings: { projectFolder: bare.folder } }, (server) => {
  test('[FN-AUTH-12] events are dispatched where the configuration does not serve the namespace of the users', async () => {
    const { body } = await server.anonymous.post(`${auth}/signin/anonymous`, {})
    const get = () => server.service.post('/api/kv/events', { action: 'get', key: body.user.id })
    await server.finishDue()
    expect((await get()).body.value).toBe(true)
  })
})
