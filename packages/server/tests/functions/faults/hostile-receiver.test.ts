/**
 * Webhooks to a receiver that fails, hangs, redirects, never ends its answer and moves to a private address: each
 * message is delivered or dead after its last attempt, at the times of the pauses, with signatures that verify.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { sha256 } from '../../../src/base/crypto/hash.ts'
import { parseWebhookKeys } from '../../../src/base/crypto/webhook-signature.ts'
import { parseCidr } from '../../../src/base/network/address.ts'
import { createPublicFetch } from '../../../src/engines/fetch/public-fetch.ts'
import { runWebhookJob } from '../../../src/features/functions/webhooks/webhook-jobs.ts'
import { webhookPausesMs } from '../../../src/limits/function-deliveries.ts'
import { MiB } from '../../../src/limits/units.ts'
import { engines } from '../../harness/engines.ts'
import { functionOf, hookOf, openNode, openStorage } from '../../harness/functions/background-node.ts'

const messages = Number(process.env.PLINTH_WEBHOOK_MESSAGES ?? 60)
const secret = `whsec_${randomBytes(32).toString('base64')}`
const attemptsMax = webhookPausesMs.length + 1

interface Attempt {
  readonly atMs: number
  readonly answer: string
}

/** The attempts that the receiver has seen, by the id of the record. */
const attempts = new Map<string, Attempt[]>()
/** What is wrong with what it has received. */
const problems: string[] = []
let nowMs = (): number => 0
let bytesSent = 0
/** Ends the answers that hang. */
const closing = Promise.withResolvers<Response>()

/** Of a hundred first attempts 30 fail, 5 hang, 5 are redirected and 5 get 10 GB; records of ten are never accepted. */
function answerTo(id: string, attempt: number): 'ok' | 'failed' | 'hanging' | 'redirect' | 'endless' {
  if (id.endsWith('0')) return 'failed'
  const draw = Number.parseInt(sha256(`${id} ${attempt}`).slice(0, 6), 16) % 100
  if (draw < 30) return 'failed'
  if (draw < 35) return 'hanging'
  if (draw < 40) return 'redirect'
  return draw < 45 ? 'endless' : 'ok'
}

/** 10 GB, as far as the receiver of the answer reads them. */
function endlessAnswer(): Response {
  let left = 10 * 1024 * MiB
  const piece = new Uint8Array(64 * 1024)
  return new Response(
    new ReadableStream({
      pull(controller) {
        left -= piece.length
        bytesSent += piece.length
        if (left < 0) controller.close()
        else controller.enqueue(piece)
      },
    }),
  )
}

function verify(body: string, headers: Headers): void {
  const [id = '', timestamp = '', signature = ''] = ['id', 'timestamp', 'signature'].map(
    (name) => headers.get(`webhook-${name}`) ?? '',
  )
  const sentMs = Number(timestamp) * 1000
  if (Math.abs(sentMs - nowMs()) > 1000) problems.push(`${id} was sent at ${timestamp}`)
  const webhook = new Webhook(secret)
  if (webhook.sign(id, new Date(sentMs), body) !== signature) problems.push(`${id} has another signature`)
  // The library compares with the clock of this machine, from which the one of the server moves away.
  if (Math.abs(sentMs - Date.now()) < 200_000) webhook.verify(body, Object.fromEntries(headers))
}

const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const body = await request.text()
    if (new URL(request.url).pathname !== '/hook') problems.push('a redirect was followed')
    verify(body, request.headers)
    const { id } = JSON.parse(body).data
    const seen = attempts.get(id) ?? []
    const answer = answerTo(id, seen.length)
    attempts.set(id, [...seen, { atMs: nowMs(), answer }])
    if (answer === 'hanging') return closing.promise
    if (answer === 'redirect') return new Response(null, { status: 307, headers: { Location: '/elsewhere' } })
    if (answer === 'endless') return endlessAnswer()
    return new Response(null, { status: answer === 'ok' ? 204 : 503 })
  },
})
afterAll(async () => {
  closing.resolve(new Response())
  await receiver.stop(true)
})

for (const engine of engines)
  describe(`a hostile receiver of webhooks on ${engine.name}`, () => {
    test('[FN-HOOK-1, FN-HOOK-3, FN-HOOK-4] gets each message by the pauses, or the message is dead', async () => {
      attempts.clear()
      await using stack = new AsyncDisposableStack()
      const storage = await openStorage(engine, stack)
      const { clock } = storage
      clock.set(Date.now())
      nowMs = () => clock.now()
      const policy = () => ({ allow: [parseCidr('127.0.0.0/8')], anyPort: true })
      // The second name has an address that is not allowed beside one that is.
      const lookup = async (host: string) => (host === 'inside.test' ? ['127.0.0.1', '10.0.0.5'] : ['127.0.0.1'])
      const fetch = createPublicFetch({ timeoutMs: 2000, bytesMax: 0, policy, lookup })
      const hosts: Record<string, string> = { outside: 'outside.test', inside: 'inside.test' }
      const names = Object.keys(hosts)
      const retries = webhookPausesMs.length
      const hooks = names.map((name) =>
        hookOf(name, name === 'outside' ? 'shared.orders' : 'shared.other', { kind: 'webhook' }),
      )
      const functions = new Map(names.map((name) => [name, functionOf(name, { kind: 'webhook', retries })]))
      const controller = new AbortController()
      const node = await openNode(storage, { functions, hooks, userHooks: [], schedules: [] }, (job) => {
        const targetOf = (name: string) => ({
          table: 'shared.orders',
          url: `http://${hosts[name]}:${receiver.port}/hook`,
          keys: parseWebhookKeys(secret),
          fields: null,
          hidden: new Set<string>(),
        })
        return runWebhookJob({ targetOf, pause: async () => {}, fetch, clock, random: () => 0 }, job, controller.signal)
      })
      const ids = Array.from({ length: messages }, (_, at) => `m${at}`)
      await node.send('POST', 'shared/tables/orders/batch', { inserts: ids.map((id) => ({ id })) })
      await node.send('POST', 'shared/tables/other', { id: 'moved' })
      for (;;) {
        await node.background.finishDue()
        const dueMs = await node.background.nextDueMs()
        if (dueMs === null) break
        clock.set(dueMs)
      }
      const admin = node.background.parts?.admin
      const jobs = (await admin?.list({ function: null, status: null, before: null }, 1000)) ?? []
      await node.close()

      expect(problems).toEqual([])
      expect([...attempts.keys()].sort()).toEqual([...ids].sort())
      expect(bytesSent).toBeLessThan(messages * 16 * MiB)
      for (const seen of attempts.values()) {
        // The first answer that is 2xx ends it, whatever its body is.
        const last = seen.at(-1)?.answer ?? ''
        expect(seen.slice(0, -1).some(({ answer }) => answer === 'ok' || answer === 'endless')).toBe(false)
        expect(['ok', 'endless'].includes(last) || seen.length === attemptsMax).toBe(true)
        for (const [at, { atMs }] of seen.slice(1).entries()) {
          const pauseMs = atMs - (seen[at] as Attempt).atMs
          expect(pauseMs).toBe(webhookPausesMs[at] as number)
        }
      }
      const isDead = (id: string): boolean => id.endsWith('0')
      const byRecord = new Map(jobs.map((job) => [JSON.parse(job.key ?? '[]')[2] as string, job]))
      for (const id of ids) expect([id, byRecord.get(id)?.status]).toEqual([id, isDead(id) ? 'dead' : 'done'])
      expect(byRecord.get('moved')).toMatchObject({ status: 'dead', attempt: attemptsMax })
      expect(byRecord.get('moved')?.error).toContain('not public')
    }, 120_000)
  })
