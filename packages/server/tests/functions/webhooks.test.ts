/** Webhooks, mails and secrets of functions: a receiver that misbehaves, a real mail server, and a clock that moves. */
import { afterAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { manualClock } from '../../src/base/clock.ts'
import { webhookPausesMs, webhookTimeoutMs } from '../../src/limits/function-deliveries.ts'
import { functionJobsOfOneMax } from '../../src/limits/function-jobs.ts'
import { open } from '../harness/config.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'
import { openMailbox } from '../harness/users/mailbox.ts'

const secret = `whsec_${randomBytes(32).toString('base64')}`

interface Received {
  readonly path: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** A receiver whose next answers tests choose; 204 otherwise. */
class Receiver {
  readonly received: Received[] = []
  readonly answers: (() => Response)[] = []
  /** The requests to a receiver that never answers, and how many of them the sender has given up. */
  readonly hanging = { count: 0, ended: 0 }
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []
  readonly server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname: path } = new URL(request.url)
      if (path === '/hanging') return this.#hang(request)
      this.received.push({ path, body: await request.text(), headers: Object.fromEntries(request.headers) })
      for (const { count, resolve } of this.#waiting) if (this.received.length >= count) resolve()
      return this.answers.shift()?.() ?? new Response(null, { status: 204 })
    },
  })

  #hang({ signal }: Request): Promise<Response> {
    this.hanging.count++
    signal.addEventListener('abort', () => this.hanging.ended++)
    return new Promise(() => {})
  }

  clear(): void {
    this.received.length = 0
  }

  /** Resolves with the message of this number, from 1. */
  async message(count: number): Promise<Received> {
    if (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }))
    return this.received[count - 1] as Received
  }
}

const receiver = new Receiver()
afterAll(() => receiver.server.stop(true))
const url = `http://127.0.0.1:${receiver.server.port}`

const project = openFunctionProject(`
export const crm = webhook('shared.orders', { url: secret('CRM_URL'), secret: secret('CRM_SECRET'), where: { paid: true } })
export const audit = webhook('shared.notes', { url: ${JSON.stringify(`${url}/audit`)}, secret: secret('CRM_SECRET'), on: ['insert'], fields: ['id'] })
export const stuck = webhook('shared.pings', { url: ${JSON.stringify(`${url}/hanging`)}, secret: secret('CRM_SECRET') })
export const welcome = onChange('shared.members', { on: ['insert'] }, async ({ after, change, attempt }, ctx) => {
  await ctx.mail.send({ to: after.email, template: 'welcome', data: after })
  if (after.fails && attempt === 1) throw new Error('after the mail')
})
export const show = rpc({ caller: 'anyone' }, (input, ctx) => { ctx.log.info('uses ' + ctx.secrets.CRM_SECRET); return ctx.secrets.CRM_URL })
`)
mkdirSync(join(project.folder, 'functions', 'mail'))
writeFileSync(join(project.folder, 'functions', 'mail', 'welcome.txt'), 'Subject: Hi {{name}}\n\nWelcome, {{name}}!\n')
writeFileSync(join(project.folder, 'functions', 'mail', 'welcome.html'), '<p>Welcome, {{name}}!</p>')
afterAll(() => project.remove())

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const config = {
  databases: {
    shared: {
      tables: {
        orders: {
          access: open,
          schema: { paid: { type: 'boolean' }, total: { type: 'number' }, margin: { type: 'number' } },
          hidden: ['margin'],
        },
        notes: { access: open, schema: { title: { type: 'string' } } },
        pings: { access: open, schema: { title: { type: 'string' } } },
        members: {
          access: open,
          schema: { email: { type: 'string' }, name: { type: 'string' }, fails: { type: 'boolean' } },
        },
      },
    },
  },
  outbound: { allow: ['127.0.0.0/8'] },
  auth: { mail: { from: 'Shop <shop@example.org>', smtp: { host: '127.0.0.1', port: mailbox.port, secure: false } } },
} as const

const clock = manualClock(Date.now())
const environment = { ...process.env, CRM_URL: `${url}/crm` }
const settings = { projectFolder: project.folder, environment: { ...environment, CRM_SECRET: secret } }

describeServer('webhooks and mails of functions', { config, clock, settings }, (server) => {
  const insert = (table: string, row: object) => server.service.post(`/api/db/shared/tables/${table}`, row)
  const jobsOf = async (name: string) => (await server.service.get(`/api/functions/jobs?queue=${name}`)).body.items
  /** Resolves once the newest job of a function has this status. */
  async function until(name: string, status: string): Promise<{ attempt: number; error: string | null }> {
    for (;;) {
      const [job] = await jobsOf(name)
      if (job?.status === status) return job
      await Bun.sleep(5)
    }
  }

  test('[FN-HOOK-1] a change that fits is delivered once, signed, without hidden fields', async () => {
    receiver.clear()
    await insert('orders', { id: 'o0', paid: false, total: 1 })
    await insert('orders', { id: 'o1', paid: true, total: 5, margin: 2 })
    const { path, body, headers } = await receiver.message(1)
    expect(path).toBe('/crm')
    const { data, ...rest } = JSON.parse(body)
    expect(rest).toMatchObject({ type: 'shared.orders.insert', previous: null })
    expect(data).toMatchObject({ id: 'o1', paid: true, total: 5 })
    expect(data).not.toHaveProperty('margin')
    // The reference library verifies by the time of this machine, so its signature is compared.
    const sentAt = new Date(Number(headers['webhook-timestamp']) * 1000)
    expect(sentAt.getTime()).toBeWithin(clock.now() - 1000, clock.now() + 1)
    const expected = new Webhook(secret).sign(headers['webhook-id'] ?? '', sentAt, body)
    expect(headers['webhook-signature']).toBe(expected)
    await until('crm', 'done')
    expect(receiver.received).toHaveLength(1)
  })

  test('[FN-HOOK-3] a message that fails is sent again after the pauses, with the same id and a new signature', async () => {
    receiver.clear()
    receiver.answers.push(
      () => new Response(null, { status: 500 }),
      () => new Response(null, { status: 302, headers: { Location: '/elsewhere' } }),
    )
    await insert('notes', { id: 'n1', title: 'a' })
    const first = await receiver.message(1)
    expect(await until('audit', 'failed')).toMatchObject({ attempt: 1, error: 'The receiver answered 500' })
    clock.advance((webhookPausesMs[0] as number) * 1.1 + 1)
    const second = await receiver.message(2)
    expect(await until('audit', 'failed')).toMatchObject({ attempt: 2, error: 'The receiver answered 302' })
    clock.advance((webhookPausesMs[1] as number) * 1.1 + 1)
    const third = await receiver.message(3)
    await until('audit', 'done')
    expect(new Set([first, second, third].map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set([first, second, third].map(({ headers }) => headers['webhook-signature'])).size).toBe(3)
    expect([first, second, third].map(({ path }) => path)).toEqual(['/audit', '/audit', '/audit'])
    expect(JSON.parse(third.body).data).toEqual({ id: 'n1' })
  })

  test('[FN-HOOK-3] 410 ends the message and pauses the webhook until it is resumed', async () => {
    receiver.clear()
    receiver.answers.push(() => new Response(null, { status: 410 }))
    await insert('notes', { id: 'n2' })
    await receiver.message(1)
    await until('audit', 'dead')
    await insert('notes', { id: 'n3' })
    await until('audit', 'waiting')
    expect(receiver.received).toHaveLength(1)
    expect((await server.service.post('/api/functions/queues/audit/resume', {})).status).toBe(200)
    expect(JSON.parse((await receiver.message(2)).body).data).toEqual({ id: 'n3' })
  })

  test('[FN-HOOK-4] a receiver that never answers is given up after the time limit, and delays no other one', async () => {
    receiver.clear()
    const before = { ...receiver.hanging }
    // The receiver also counts what the server of another engine has sent.
    const hanging = () => ({
      count: receiver.hanging.count - before.count,
      ended: receiver.hanging.ended - before.ended,
    })
    const pings = Array.from({ length: functionJobsOfOneMax + 1 }, (_, at) => ({ id: `p${at}` }))
    expect((await server.service.post('/api/db/shared/tables/pings/batch', { inserts: pings })).status).toBe(200)
    while (hanging().count < functionJobsOfOneMax) await Bun.sleep(1)
    await insert('notes', { id: 'n4' })
    expect(JSON.parse((await receiver.message(1)).body).data).toEqual({ id: 'n4' })
    await until('audit', 'done')
    clock.advance(webhookTimeoutMs - 1)
    await insert('notes', { id: 'n5' })
    await receiver.message(2)
    const statuses = async () => (await jobsOf('stuck')).map(({ status }: { status: string }) => status)
    expect((await statuses()).filter((status: string) => status === 'running')).toHaveLength(functionJobsOfOneMax)
    expect(hanging()).toEqual({ count: functionJobsOfOneMax, ended: 0 })
    clock.advance(1)
    while (hanging().ended < functionJobsOfOneMax) await Bun.sleep(1)
    while ((await statuses()).filter((status: string) => status === 'failed').length < functionJobsOfOneMax)
      await Bun.sleep(5)
    const failed = (await jobsOf('stuck')).find(({ status }: { status: string }) => status === 'failed')
    expect(failed).toMatchObject({ attempt: 1, error: 'The receiver did not answer in time' })
    // The one that waited for a place.
    while (hanging().count <= functionJobsOfOneMax) await Bun.sleep(1)
  })

  test('[FN-MAIL-1] a mail from a template is sent once, also where the job is attempted again', async () => {
    const address = `ada-${crypto.randomUUID()}@example.org`
    await insert('members', { email: address.toUpperCase(), name: 'Ada <3', fails: true })
    const mail = await mailbox.next(address)
    expect(mail.subject).toBe('Hi Ada <3')
    expect(mail.headers.get('from')).toEqual(['Shop <shop@example.org>'])
    expect(mail.headers.get('content-type')?.[0]).toStartWith('multipart/alternative')
    expect(mail.text).toContain('Welcome, Ada <3!')
    expect(mail.html).toContain('<p>Welcome, Ada &lt;3!</p>')
    expect(await until('welcome', 'failed')).toMatchObject({ attempt: 1 })
    clock.advance(60_000)
    expect(await until('welcome', 'done')).toMatchObject({ attempt: 2 })
    await until('@mail', 'done')
    expect(await jobsOf('@mail')).toHaveLength(1)
    expect(mailbox.received.filter(({ to }) => to.includes(address))).toHaveLength(1)
  })

  test('[FN-MAIL-2] a mail with the key of an earlier one is not sent; faulty fields are named', async () => {
    const send = (more: object) => server.service.post('/api/functions/mail', { to: 'eve@example.org', ...more })
    const mail = { subject: 'One\r\nBcc: x@example.org', html: '<p>Hello<br>Eve</p>', idempotencyKey: 'k1' }
    const [one, two] = [await send(mail), await send(mail)]
    expect([one.status, two.status]).toEqual([202, 202])
    expect(two.body.jobId).toBe(one.body.jobId)
    const { subject, text, headers } = await mailbox.next('eve@example.org')
    expect([subject, headers.has('bcc')]).toEqual(['One Bcc: x@example.org', false])
    expect(text).toContain('Hello\nEve')
    const faulty = await send({ to: 'nobody', subject: ' ' })
    expect([faulty.status, Object.keys(faulty.body.data)]).toEqual([400, ['to', 'subject', 'text']])
    expect((await server.anonymous.post('/api/functions/mail', mail)).status).toBe(401)
  })

  test('[FN-SECRET-5] the value of a secret is in no line of the log', async () => {
    expect((await server.anonymous.post('/api/fn/show', {})).body).toBe(`${url}/crm`)
    const lines = server.logged()
    expect(lines).toContain('uses [secret CRM_SECRET]')
    expect(lines).not.toContain(secret)
  })

  test('[FN-SECRET-1] a stored secret is listed without its value; the environment wins', async () => {
    const path = '/api/functions/secrets'
    expect(
      (await server.service.request('PUT', `${path}/CRM_URL`, { body: { value: 'http://127.0.0.1:1/' } })).status,
    ).toBe(200)
    const listed = await server.service.get(path)
    expect(listed.body.secrets).toMatchObject([{ name: 'CRM_URL' }])
    expect(listed.text).not.toContain('127.0.0.1')
    expect((await server.anonymous.post('/api/fn/show', {})).body).toBe(`${url}/crm`)
    expect((await server.service.delete(`${path}/CRM_URL`)).status).toBe(200)
    expect((await server.service.delete(`${path}/CRM_URL`)).status).toBe(404)
    expect((await server.anonymous.get(path)).status).toBe(401)
  })
})
