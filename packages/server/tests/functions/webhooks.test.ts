/** Webhooks, mails and secrets of functions: a receiver that misbehaves, a real mail server, and a clock that moves. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { manualClock } from '../../src/base/clock.ts'
import { webhookPausesMs } from '../../src/limits/function-webhooks.ts'
import { open } from '../harness/config.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer } from '../harness/server.ts'
import { type Mailbox, openMailbox } from '../harness/users/mailbox.ts'

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
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []
  readonly server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname: path } = new URL(request.url)
      this.received.push({ path, body: await request.text(), headers: Object.fromEntries(request.headers) })
      for (const { count, resolve } of this.#waiting) if (this.received.length >= count) resolve()
      return this.answers.shift()?.() ?? new Response(null, { status: 204 })
    },
  })

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

let mailbox: Mailbox
beforeAll(async () => {
  mailbox = await openMailbox()
})
afterAll(() => mailbox.close())

const table = { access: open }
const config = () => ({
  databases: {
    shared: {
      tables: {
        orders: { ...table, schema: { paid: { type: 'boolean' }, total: { type: 'number' }, margin: { type: 'number' } }, hidden: ['margin'] },
        notes: { ...table, schema: { title: { type: 'string' } } },
        members: { ...table, schema: { email: { type: 'string' }, name: { type: 'string' }, fails: { type: 'boolean' } } },
      },
    },
  },
  outbound: { allow: ['127.0.0.0/8'] },
  auth: { mail: { from: 'Shop <shop@example.org>', smtp: { host: '127.0.0.1', port: mailbox.port, secure: false } } },
}) as const

const clock = manualClock(Date.now())
const environment = { ...process.env, CRM_URL: `${url}/crm`, CRM_SECRET: secret }
const settings = { projectFolder: project.folder, environment }

describe('webhooks', () => {
  beforeAll(() => undefined)
})

describeServer('webhooks and mails of functions', { config: config as never, clock, settings }, (server) => {
  const tables = '/api/db/shared/tables'
  const insert = (name: string, row: object) => server.service.post(`${tables}/${name}`, row)
  const jobsOf = async (name: string) => (await server.service.get(`/api/functions/jobs?queue=${name}`)).body.jobs

  test('[FN-HOOK-1] a change that fits is delivered once, signed, without hidden fields', async () => {
    await insert('orders', { id: 'o0', paid: false, total: 1 })
    await insert('orders', { id: 'o1', paid: true, total: 5, margin: 2 })
    const { path, body, headers } = await receiver.message(1)
    expect(path).toBe('/crm')
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({
      type: 'shared.orders.insert',
      data: { id: 'o1', paid: true, total: 5 },
      previous: null,
    })
    expect(JSON.parse(body).data).not.toHaveProperty('margin')
  })
})
