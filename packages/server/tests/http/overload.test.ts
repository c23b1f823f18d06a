/** Overload: expensive requests are refused before they read or change anything, and cheap ones are served. */
import { expect, test } from 'bun:test'
import { AdmissionControl } from '../../src/base/concurrency/admission-control.ts'
import {
  expensiveSliceMs,
  expensiveWaitingMax,
  expensiveWaitingPerCallerMax,
  retryAfterSecondsMax,
} from '../../src/limits/api.ts'
import { type Client, query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const base = '/api/db/shared/tables/notes'
const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { title: { type: 'string' }, rank: { type: 'number' }, slug: { type: 'string', unique: true } },
          indexes: [{ fields: ['rank'] }],
          search: ['title'],
          access: open,
        },
      },
    },
  },
} as const

/** Admission in which no round ends until the test says so. */
function pausedAdmission() {
  let nowMs = 0
  let due: (() => void)[] = []
  const admission = new AdmissionControl({ elapsedMs: () => nowMs, nextRound: (callback) => void due.push(callback) })
  const never = new AbortController().signal
  return {
    admission,
    /** Ends rounds until nothing waits. */
    release(): void {
      for (let callbacks = due; callbacks.length > 0; callbacks = due) {
        due = []
        for (const callback of callbacks) callback()
      }
    },
    /** Begins the slice of a round and uses it up; then `count` requests of one caller wait. */
    fill(caller: string, count: number): void {
      void admission.admit(caller, never)
      nowMs += expensiveSliceMs
      for (let at = admission.waiting > 0 ? 1 : 0; at < count; at++) void admission.admit(caller, never)
    },
  }
}

const paused = pausedAdmission()
const waitsOf = (caller: string) => paused.fill(caller, expensiveWaitingPerCallerMax)

type Send = (client: Client) => ReturnType<Client['get']>
const batch: Send = (client) => client.post(`${base}/batch`, { inserts: [{ id: 'refused' }] })
const expensive: readonly [name: string, send: Send][] = [
  ['a search', (client) => client.get(`${base}/search?q=x`)],
  ['an aggregate', (client) => client.get(`${base}/aggregate${query({ measures: { n: 'count' } })}`)],
  ['a batch', batch],
  ['a batch by filter', (client) => client.post(`${base}/batch-by-filter`, { action: 'delete', filter: [] })],
  [
    'a transaction',
    (client) =>
      client.post('/api/db/shared/transaction', { operations: [{ table: 'notes', insert: { id: 'refused' } }] }),
  ],
  ['a list filtered without an index', (client) => client.get(base + query({ filter: [['title', '==', 'x']] }))],
  ['a list sorted without an index', (client) => client.get(base + query({ sort: 'title:asc' }))],
]
const cheap: readonly [name: string, send: Send][] = [
  ['a point read', (client) => client.get(`${base}/kept`)],
  ['a list', (client) => client.get(base)],
  ['a list filtered by an index', (client) => client.get(base + query({ filter: [['rank', '>', 0]] }))],
  ['a list filtered by a unique field', (client) => client.get(base + query({ filter: [['slug', '==', 'kept']] }))],
  ['a list sorted by an index', (client) => client.get(base + query({ sort: 'rank:desc' }))],
  ['a count', (client) => client.get(`${base}/count`)],
  ['a write of one record', (client) => client.patch(`${base}/kept`, { rank: 1 })],
  ['health', (client) => client.get('/api/health')],
]

describeServer('overload', { config, substitutes: { admission: paused.admission } }, (server) => {
  const prepare = async (): Promise<void> => {
    paused.release()
    expect((await server.service.post(base, { id: 'kept', title: 'x', rank: 1, slug: 'kept' })).status).toBe(201)
  }

  test('[OVERLOAD-1] expensive requests are 503 with Retry-After and change nothing; the others are served', async () => {
    await prepare()
    for (let at = 0; paused.admission.waiting < expensiveWaitingMax; at++) waitsOf(`other ${at}`)
    for (const [name, send] of expensive) {
      const answer = await send(server.as('ann'))
      expectRefusal(answer, 503)
      expect(answer.body.slug, name).toBe('unavailable')
      const retryAfter = Number(answer.headers.get('retry-after'))
      expect(retryAfter).toBeGreaterThanOrEqual(1)
      expect(retryAfter).toBeLessThanOrEqual(retryAfterSecondsMax)
    }
    for (const [name, send] of cheap) expect((await send(server.as('ann'))).status, name).toBe(200)
    paused.release()
    expect((await server.as('ann').get(`${base}/count`)).body).toEqual({ total: 1 })
    await server.service.delete(`${base}/kept`)
  })

  test('[OVERLOAD-2] a caller with too many waiting is 429; another waits, and is served', async () => {
    await prepare()
    waitsOf('user:ann')
    expectRefusal(await batch(server.as('ann')), 429)
    const waiting = server.as('ben').get(`${base}/search?q=x`)
    let isServed = false
    void waiting.then(() => (isServed = true))
    const readKept = async () => expect((await server.as('ben').get(`${base}/kept`)).status).toBe(200)
    // Requests on two connections arrive in any order.
    while (paused.admission.waiting === expensiveWaitingPerCallerMax && !isServed) await readKept()
    await readKept()
    expect(isServed).toBe(false)
    expect(paused.admission.waiting).toBe(expensiveWaitingPerCallerMax + 1)
    paused.release()
    expect((await waiting).body.total).toBe(1)
    await server.service.delete(`${base}/kept`)
  })

  test('[OVERLOAD-3] metrics count what waits and what was refused', async () => {
    paused.release()
    const { text } = await server.service.get('/metrics')
    expect(text).toMatch(/^expensive_requests_waiting 0$/m)
    expect(text).toMatch(/^expensive_requests_refused_total [1-9]/m)
  })
})
