/** Calls of a program, through the client or by a bare `fetch` of the same request. */
import { createClient, records } from '../../packages/client/src/index.ts'
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { authorAt, idAt, newRowAt, rowsPerAuthor } from '../setup/data.ts'
import type { Caller, Operation } from './plan.ts'

export interface CallsJob {
  readonly do: 'calls'
  readonly caller: Caller
  readonly operation: Operation
  readonly url: string
  readonly inFlight: number
  readonly warmupSeconds: number
  readonly seconds: number
}

export interface CallsResult {
  readonly calls: number
  readonly seconds: number
  readonly cpuSeconds: number
  readonly latencies: SparseHistogram
}

type Call = (number: number) => Promise<unknown>

/** Rows of the table whose calls are measured. */
export const calledRows = 1000

const callsOf = (url: string, fetch?: typeof globalThis.fetch): Readonly<Record<Operation, Call>> => {
  const plinth = createClient(url, [records], fetch ? { fetch } : {})
  const { posts } = plinth.db()
  const page = posts.where('authorId', '==', authorAt(0)).sort('createdAt').limit(30)
  return {
    get: (number) => posts.get(idAt(number % calledRows)),
    list: () => page.list(),
    insert: (number) => posts.insert(newRowAt(number)),
  }
}

/** The request that the client sends for an operation. */
async function recordRequest(url: string, operation: Operation): Promise<{ url: string; init: RequestInit }> {
  const sent: { url: string; init: RequestInit }[] = []
  const record = (to: string | URL | Request, { method, headers, body }: RequestInit = {}) => {
    sent.push({ url: String(to), init: { method, headers, body } as RequestInit })
    return fetch(String(to), { method, headers, body } as RequestInit)
  }
  await callsOf(url, record as typeof fetch)[operation](0)
  const [request] = sent
  if (!request) throw new Error('The client has sent no request')
  return request
}

/** The least that a program has to do for the same: send the request, check the status, parse the answer. */
async function bareCall(url: string, operation: Operation): Promise<Call> {
  const request = await recordRequest(url, operation)
  const send = async (to: string, init: RequestInit): Promise<unknown> => {
    const response = await fetch(to, init)
    if (!response.ok) throw new Error(`${to}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  if (operation === 'get')
    return (number) => send(request.url.replace(idAt(0), idAt(number % calledRows)), request.init)
  if (operation === 'list') return () => send(request.url, request.init)
  const headers = new Headers(request.init.headers)
  return (number) => {
    headers.set('Idempotency-Key', crypto.randomUUID())
    return send(request.url, { ...request.init, headers, body: JSON.stringify(newRowAt(number)) })
  }
}

/** The answer of a call must be what the call requested. */
function check(operation: Operation, answer: unknown, number: number): void {
  const { id, items, total } = answer as { id?: string; items?: unknown[]; total?: number }
  const isRight =
    operation === 'get'
      ? id === idAt(number % calledRows)
      : operation === 'list'
        ? items?.length === 30 && total === rowsPerAuthor
        : id !== undefined
  if (!isRight) throw new Error(`${operation}: a wrong answer: ${JSON.stringify(answer).slice(0, 200)}`)
}

/** Calls for the given time, always as many at once. */
export async function runCalls(job: CallsJob): Promise<CallsResult> {
  const { operation, url } = job
  const call = job.caller === 'client' ? callsOf(url)[operation] : await bareCall(url, operation)
  let number = 0
  const during = async (seconds: number): Promise<CallsResult> => {
    const latencies = new Histogram()
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    const endsAt = startedAt + seconds * 1000
    const lane = async (): Promise<void> => {
      for (let now = performance.now(); now < endsAt; ) {
        const at = number++
        const answer = await call(at)
        const answeredAt = performance.now()
        latencies.add(answeredAt - now)
        now = answeredAt
        if (at % 211 === 0) check(operation, answer, at)
      }
    }
    await Promise.all(Array.from({ length: job.inFlight }, lane))
    const { user, system } = process.cpuUsage(cpu)
    return {
      calls: latencies.total,
      seconds: (performance.now() - startedAt) / 1000,
      cpuSeconds: (user + system) / 1e6,
      latencies: latencies.toSparse(),
    }
  }
  await during(job.warmupSeconds)
  return during(job.seconds)
}
