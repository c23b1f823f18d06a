/** The public module `plinth/testing`: a project tested as its users test it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type TestServer, testServer } from '../../src/testing/test-server.ts'
import { openFunctionProject } from '../harness/functions.ts'

const project = openFunctionProject(`
export const slug = before('shared.posts', ['insert'], ({ row }) => ({ ...row, slug: row.title.toLowerCase() }))
export const log = onChange('shared.posts', { on: ['insert'] }, async ({ after }, ctx) => {
  await ctx.service.db('shared').events.insert({ text: 'post ' + after.title, at: ctx.now().toISOString() })
})
export const stamp = before('storage.pictures', ['insert'], ({ row }) => {
  if (row.size > 5) throw new HttpError(422, 'too-large', 'Too large')
  return { ...row, customMetadata: { stamped: 'yes' } }
})
export const picture = onChange('storage.pictures', {}, async ({ operation, after, previous }, ctx) => {
  await ctx.service.db('shared').events.insert({ text: operation + ' ' + (after ?? previous).key, at: ctx.now().toISOString() })
})
export const hourly = schedule('0 * * * *', {}, async (ctx) => {
  await ctx.service.db('shared').events.insert({ text: 'hourly', at: ctx.scheduledAt.toISOString() })
})
export const later = queue('later', { retries: 3 }, async ({ text, fails }, ctx) => {
  if (ctx.attempt <= fails) throw new Error('not yet')
  await ctx.service.db('shared').events.insert({ text, at: ctx.now().toISOString() })
})
export const plan = rpc({ caller: 'anyone' }, ({ text, delay, fails = 0 }, ctx) => ctx.enqueue('later', { text, fails }, delay ? { delay } : {}))
export const rate = rpc({ caller: 'anyone' }, async (url, ctx) => {
  const response = await ctx.fetch(url, { method: 'POST', body: 'EUR', headers: { 'x-key': '1' } })
  return { status: response.status, body: await response.json() }
})
export const failing = rpc({ caller: 'anyone' }, (url, ctx) => ctx.fetch(url).then(() => 'none', (error) => error.message))
export const crm = webhook('shared.posts', { url: 'https://crm.example/hook', secret: 'whsec_' + 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=', on: ['update'] })
export const who = rpc({}, (input, ctx) => ctx.auth)
export const ring = rpc({}, (input, ctx) => ctx.push.send(ctx.auth.id, { title: 'Hi', body: 'there' }))
`)

const text = { type: 'string' } as const
const all = { read: true, insert: true, update: true, delete: true }
const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: text, slug: text },
          access: { ...all, insert: (auth: object | null) => auth !== null },
        },
        events: { schema: { text, at: text }, access: all },
      },
    },
  },
  storage: { buckets: { pictures: {} } },
}

interface Who {
  readonly id: string
}

const functions = join(project.folder, 'functions')
const start = new Date('2026-05-01T10:30:00Z')
let t: TestServer
beforeAll(async () => {
  t = await testServer({ config, functions, now: start })
})
afterAll(async () => {
  await t.close()
  project.remove()
})

const timeOf = (at: string): string => at.slice(5, 19)

/** The texts of events that begin so, with the times at which they were written. */
async function events(like: string): Promise<string[]> {
  const found = await t.client.db('shared').table('events').limit(100).list()
  return found.items
    .map(({ text, at }) => `${text} ${timeOf(String(at))}`)
    .filter((event) => event.startsWith(like))
    .sort()
}

test('[FN-TEST-1] servers with the functions of a project share no data', async () => {
  await t.client.db('shared').table('events').insert({ text: 'alone', at: '' })
  const other = await testServer({ config, functions, now: start })
  try {
    expect(await other.client.call('failing', 'https://example.com/')).toContain('No reply is set')
    expect((await other.client.db('shared').table('events').list()).items).toEqual([])
  } finally {
    await other.close()
  }
})

test('[FN-TEST-2] as() creates the user once, and signs in as that user at any time', async () => {
  const ada = await t.as({ email: 'ada@example.com', role: 'editor', claims: { team: 'a' } })
  const who = await ada.call<Who>('who')
  expect(who).toMatchObject({ email: 'ada@example.com', role: 'editor', custom: { team: 'a' } })
  const again = await t.as({ email: 'ada@example.com' })
  expect((await again.call<Who>('who')).id).toBe(who.id)
  const account = await t.client.request<{ id: string }>('GET', `/api/auth/admin/users/${who.id}`)
  expect(account.id).toBe(who.id)
  await t.advance('2d')
  expect((await ada.call<Who>('who')).id).toBe(who.id)
  expect((await (await t.as({ id: 'u1' })).call<Who>('who')).id).toBe('u1')
  await expect((await t.as(null)).call<Who>('who')).rejects.toMatchObject({ status: 401 })
})

test('[FN-TEST-2] as() gives the user the claims of the functions, with or without an account', async () => {
  const own = openFunctionProject(`
export const claims = auth.claims((user) => ({ plan: user.role + ' plan', seat: user.customClaims.seat ?? 0 }))
export const gate = auth.beforeSignUp(({ email }) => {
  if (email.endsWith('@closed.example')) throw new HttpError(403, 'closed', 'Closed')
})
export const welcome = auth.onUser(['created'], ({ user }, ctx) => ctx.mail.send({ to: user.email, subject: 'Hi', text: 'Hi' }))
export const who = rpc({}, (input, ctx) => ctx.auth)
`)
  const other = await testServer({ config, functions: join(own.folder, 'functions'), now: start })
  try {
    const mia = await other.as({ email: 'mia@example.com', role: 'editor', claims: { seat: 7, team: 'a' } })
    expect(await mia.call<Who>('who')).toMatchObject({ custom: { plan: 'editor plan', seat: 7, team: 'a' } })
    expect(await (await other.as({ id: 'u9' })).call<Who>('who')).toMatchObject({
      custom: { plan: 'user plan', seat: 0 },
    })
    await expect(other.as({ email: 'x@closed.example' })).rejects.toThrow('as(): Closed')
    await other.settled()
    expect(other.mail).toMatchObject([{ to: 'mia@example.com', subject: 'Hi' }])
  } finally {
    await other.close()
    own.remove()
  }
})

test('[FN-TEST-3] settled() waits until changes have become jobs and the jobs have run', async () => {
  const user = await t.as({ id: 'u2' })
  const post = await user.db('shared').table('posts').insert({ title: 'Hello' })
  expect(post.slug).toBe('hello')
  await t.settled()
  expect(await events('post')).toEqual([`post Hello ${timeOf(t.now().toISOString())}`])
})

test('[FN-TEST-3, FN-FILE-1, FN-FILE-6] files run their functions', async () => {
  const pictures = t.client.files('pictures')
  expect(await pictures.upload('p', 'small')).toMatchObject({ customMetadata: { stamped: 'yes' } })
  await expect(pictures.upload('q', 'too large')).rejects.toMatchObject({ status: 422, slug: 'too-large' })
  await pictures.delete('p')
  await t.settled()
  expect(
    (await events('')).filter((event) => /^(insert|update|delete) /.test(event)).map((event) => event.slice(0, 8)),
  ).toEqual(['delete p', 'insert p'])
})

test('[FN-TEST-4] the clock moves by advance() only, through each due time in order', async () => {
  const other = await testServer({ config, functions, now: start })
  const first = t
  t = other
  try {
    expect(other.now()).toEqual(start)
    await other.client.call('plan', { text: 'delayed', delay: '45m' })
    await other.settled()
    expect(await events('')).toEqual([])
    await other.advance('3h')
    expect(other.now().toISOString()).toBe('2026-05-01T13:30:00.000Z')
    expect(await events('hourly')).toEqual(['hourly 05-01T11:00:00', 'hourly 05-01T12:00:00', 'hourly 05-01T13:00:00'])
    expect(await events('delayed')).toEqual(['delayed 05-01T11:15:00'])
    await other.client.call('plan', { text: 'retried', fails: 2 })
    await other.settled()
    expect(await events('retried')).toEqual([])
    await other.advance('1d')
    expect(await events('retried')).toHaveLength(1)
    expect((await events('hourly')).length).toBe(27)
  } finally {
    t = first
    await other.close()
  }
})

test('[FN-TEST-5] ctx.fetch gets the replies of the test, and fails without one', async () => {
  const seen: string[] = []
  t.fetch.on('https://rates.example/v1', async (request) => {
    seen.push(`${request.method} ${request.url} ${request.headers.get('x-key')} ${await request.text()}`)
    return Response.json({ rate: 1.5 }, { status: 201 })
  })
  t.fetch.on(/^https:\/\/broken\./, () => {
    throw new Error('no route to host')
  })
  const url = 'https://rates.example/v1?day=1'
  expect(await t.client.call('rate', url)).toEqual({ status: 201, body: { rate: 1.5 } })
  expect(seen).toEqual([`POST ${url} 1 EUR`])
  expect(await t.client.call('failing', 'https://other.example/a')).toContain(
    "No reply is set for fetch of https://other.example/a. Add one to the test: t.fetch.on('https://other.example/a'",
  )
  expect(await t.client.call('failing', 'https://broken.example/')).toContain('no route to host')
})

test('[FN-TEST-6] mails and pushes are kept and not sent', async () => {
  const user = await t.as({ email: 'grace@example.com' })
  const { id } = await user.call<Who>('who')
  expect(await user.call('ring')).toMatchObject({ ok: true, sent: 1 })
  expect(t.pushes).toEqual([{ userId: id, title: 'Hi', body: 'there' }])
  await (await t.as(null)).request('POST', '/api/auth/request-password-reset', { body: { email: 'grace@example.com' } })
  await t.settled()
  expect(t.mail).toMatchObject([{ to: 'grace@example.com', subject: expect.any(String), text: expect.any(String) }])
})

test('[FN-TEST-6] webhooks are kept, and attempts that a reply refuses are repeated', async () => {
  let refused = 0
  t.fetch.on('https://crm.example/hook', () => new Response(null, { status: refused++ === 0 ? 500 : 200 }))
  const posts = (await t.as({ id: 'u3' })).db('shared').table('posts')
  const { id } = await posts.insert({ title: 'First' })
  await posts.update(String(id), { title: 'Second' })
  await t.settled()
  expect(t.webhooks).toMatchObject([
    { url: 'https://crm.example/hook', event: { type: 'shared.posts.update', data: { title: 'Second' } } },
  ])
  await t.advance('1h')
  expect(t.webhooks).toHaveLength(2)
})

test('[FN-TEST-7] a wrong duration, folder or configuration is named', async () => {
  await expect(t.advance('soon')).rejects.toThrow('advance("soon"): must be a duration')
  await expect(testServer({ config, functions: '/nowhere' })).rejects.toThrow('there is no index.ts in /nowhere')
  await expect(testServer({ config: { database: {} } })).rejects.toThrow('database')
  await expect(testServer({ config: '/nowhere/plinth.config.ts' })).rejects.toThrow('There is no configuration')
})
