/**
 * `room.db`: access to records through the endpoints of the API, with the permissions of a service key. The tables that
 * it opens are those of the client package, so that they are the same everywhere.
 */
import type * as Library from 'plinth-client'
import type { ServiceCaller } from '../../access/caller.ts'
import type { RoomDatabase, RoomRecords } from '../../config/sections/rooms/room-code.ts'
import { apiError, type ErrorBody, foreignError } from '../../errors.ts'
import type { RunInternally } from '../../http/internal-request.ts'
import type { LiveHandler } from './engine/ports.ts'

const caller: ServiceCaller = Object.freeze({ kind: 'service', auth: null, keyName: 'rooms', scopes: ['*'] })

const tablePattern = /^([^.:]+)(?::(.+))?\.([^.]+)$/

/** The path of `namespace.table` or `namespace:instanceId.table`. Throws for any other text. */
function pathOf(table: string, id?: string): string {
  const [, namespace, instanceId, name] = tablePattern.exec(table) ?? []
  if (namespace === undefined || name === undefined)
    throw new Error(`"${table}" is not the name of a table: write "namespace.table" or "namespace:instanceId.table"`)
  const database = instanceId === undefined ? [namespace] : [namespace, instanceId]
  const parts = ['api', 'db', ...database, 'tables', name, ...(id === undefined ? [] : [String(id)])]
  return `/${parts.map(encodeURIComponent).join('/')}`
}

function queryOf(query: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

/** The origin of the client's URLs, which no request reaches. */
const origin = 'http://room.internal'

const jsonType = { 'Content-Type': 'application/json' }

type RunInRoom = (request: Omit<Parameters<RunInternally>[0], 'caller' | 'requestId'>) => Promise<Response>

export interface RoomDatabases {
  /** Loads the client package, which a server without rooms does not need. */
  load(): Promise<void>
  /** Creates the `room.db` of one handler, once the package is loaded. */
  readonly open: (handler: LiveHandler) => RoomDatabase
}

export function createRoomDatabases(run: RunInternally, newId: () => string): RoomDatabases {
  let library: typeof Library | null = null
  const send: RunInRoom = (request) => run({ ...request, caller, requestId: `room-${newId()}` })

  function createClient(handler: LiveHandler) {
    if (library === null) throw new Error('The client package is not loaded')
    return library.createClient(origin, [library.records], { retries: 0, fetch: createFetch(handler, send) })
  }

  return {
    async load() {
      library ??= await import('plinth-client')
    },
    open(handler) {
      let client: ReturnType<typeof createClient> | null = null
      const open = (namespace?: string, instanceId?: string): unknown => {
        handler.checkLive()
        client ??= createClient(handler)
        return client.db(namespace, instanceId)
      }
      return Object.assign(open, createRoomRecords(handler, send))
    },
  }
}

function createRoomRecords(handler: LiveHandler, send: RunInRoom): RoomRecords {
  async function call(method: string, target: string, data?: unknown): Promise<unknown> {
    const body = data === undefined ? null : JSON.stringify(data)
    const response = await send({ method, target, body, headers: body === null ? {} : jsonType })
    const text = await response.text()
    if (response.ok) return text === '' ? null : JSON.parse(text)
    const error = JSON.parse(text) as ErrorBody
    throw foreignError(response.status, error.slug, error.message, error.data)
  }
  /** Throws at once where the handler has ended. */
  const whileLive =
    <Args extends unknown[]>(work: (...args: Args) => Promise<unknown>) =>
    (...args: Args): Promise<unknown> => {
      handler.checkLive()
      return work(...args)
    }
  type Query = Readonly<Record<string, unknown>>
  return {
    list: whileLive(async (table: string, query: Query = {}) => call('GET', `${pathOf(table)}${queryOf(query)}`)),
    get: whileLive(async (table: string, id: string) => call('GET', pathOf(table, id))),
    insert: whileLive(async (table: string, data: object) => call('POST', pathOf(table), data)),
    update: whileLive(async (table: string, id: string, data: object) => call('PATCH', pathOf(table, id), data)),
    delete: whileLive(async (table: string, id: string) => call('DELETE', pathOf(table, id))),
  }
}

/** The `fetch` of a client: its requests fail once the handler has ended. */
function createFetch(handler: LiveHandler, send: RunInRoom): typeof fetch {
  const run = async (url: string, { method = 'GET', headers, body, signal }: RequestInit = {}): Promise<Response> => {
    try {
      handler.checkLive()
    } catch (error) {
      const refusal = apiError('client-closed-request', (error as Error).message)
      return Response.json(refusal.body(), { status: refusal.status })
    }
    return send({
      method,
      target: url.slice(origin.length),
      headers: headers as [string, string][],
      body: body as string | null,
      signal: signal ?? undefined,
    })
  }
  return run as unknown as typeof fetch
}
