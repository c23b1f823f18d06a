/**
 * Clients that write through the load balancer, record every acknowledgement, and verify afterwards that all
 * acknowledged writes exist. Each write inserts a note and, in the same transaction, increments one of a few counters,
 * so that both lost and duplicated writes are detected.
 */

/** Concurrent writers; enough that a node is killed in the middle of many writes. */
const writersMax = 32
const counters = 8
/** Retries after a broken connection: several seconds in total, longer than failover takes. */
const attemptsMax = 200
const pauseMs = 25
const pageRows = 1000

export interface Load {
  /** Writes until the given number of writes is acknowledged in total. */
  writeUntil(acknowledged: number): Promise<void>
  readonly acknowledged: number
  /** Requests that were retried because their response was lost. */
  readonly retried: number
}

export interface Target {
  readonly url: string
  readonly serviceKey: string
}

export interface Verdict {
  readonly notes: number
  /** Acknowledged notes that are missing or differ. */
  readonly lost: number
  /** Sum of the counters. */
  readonly counted: number
}

const tablePath = '/api/db/shared/tables/notes'
const counterId = (n: number): string => `counter-${n % counters}`
const noteId = (n: number): string => `note-${String(n).padStart(8, '0')}`

async function send({ url, serviceKey }: Target, path: string, body?: object, key?: string): Promise<Response> {
  return fetch(url + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      'X-Platform-Service-Key': serviceKey,
      'Content-Type': 'application/json',
      ...(key ? { 'Idempotency-Key': key } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, pauseMs))

/** Retries until a success response: after a broken connection or a 5xx the outcome of a request is unknown. */
async function sendWithRetries(target: Target, path: string, body: object, key: string, onRetry: () => void) {
  for (let attempt = 1; ; attempt++) {
    const response = await send(target, path, body, key).catch(() => null)
    const text = await response?.text().catch(() => null)
    if (response?.ok && text != null) return
    const isFinal = response !== null && response.status < 500
    if (isFinal || attempt === attemptsMax)
      throw new Error(`${path}: ${response?.status ?? 'no response'} ${text ?? ''}`)
    onRetry()
    await pause()
  }
}

/** Creates the counters; `writeUntil` starts the load. */
export async function createLoad(target: Target): Promise<Load> {
  const run = crypto.randomUUID()
  let sent = 0
  let acknowledged = 0
  let retried = 0
  const post = (path: string, body: object, key: string): Promise<void> =>
    sendWithRetries(target, path, body, `${run}-${key}`, () => retried++)

  const inserts = Array.from({ length: counters }, (_, n) => ({ id: counterId(n), count: 0 }))
  await post(`${tablePath}/batch`, { inserts }, 'counters')

  async function write(n: number): Promise<void> {
    const body = {
      inserts: [{ id: noteId(n), authorId: 'load', number: n, text: `Note number ${n}` }],
      updates: [{ id: counterId(n), data: { count: { $op: 'increment', value: 1 } } }],
    }
    await post(`${tablePath}/batch`, body, String(n))
    acknowledged++
  }

  return {
    async writeUntil(wanted) {
      const work = async (): Promise<void> => {
        while (sent < wanted) await write(sent++)
      }
      await Promise.all(Array.from({ length: writersMax }, work))
    },
    get acknowledged() {
      return acknowledged
    },
    get retried() {
      return retried
    },
  }
}

/** Reads all notes from one node and compares them with the acknowledged ones. */
export async function check(target: Target, acknowledged: number): Promise<Verdict> {
  const found = new Map<string, Record<string, unknown>>()
  for (let cursor = '', more = true; more; ) {
    const response = await send(target, `${tablePath}?limit=${pageRows}&after=${encodeURIComponent(cursor)}`)
    if (!response.ok) throw new Error(`${target.url}: ${response.status} ${await response.text()}`)
    const page = (await response.json()) as { items: Record<string, unknown>[]; cursor: string; hasMore: boolean }
    for (const item of page.items) found.set(String(item.id), item)
    more = page.hasMore
    cursor = page.cursor
  }
  let lost = 0
  for (let n = 0; n < acknowledged; n++) if (found.get(noteId(n))?.number !== n) lost++
  let counted = 0
  for (let n = 0; n < counters; n++) counted += Number(found.get(counterId(n))?.count)
  return { notes: [...found.keys()].filter((id) => id.startsWith('note-')).length, lost, counted }
}
