/** `room.db`: access to records through the endpoints of the API, with the permissions of a service key. */
import type { ServiceCaller } from '../../access/caller.ts'
import type { RoomDatabase } from '../../config/sections/rooms/room-code.ts'
import type { Endpoint } from '../../http/endpoint.ts'
import { emptyBody } from '../../http/input/request-body.ts'
import { createParameterReader, validate } from '../../http/input/validate.ts'
import { textOf } from '../../http/replies/reply.ts'

const caller: ServiceCaller = Object.freeze({ kind: 'service', auth: null, keyName: 'rooms', scopes: ['*'] })

const tablePattern = /^([^.:]+)(?::(.+))?\.([^.]+)$/

/** Parses `namespace.table` or `namespace:instanceId.table` into path parameters. Throws for any other text. */
function parseTable(table: string): Readonly<Record<string, string>> {
  const [, namespace, instanceId, name] = tablePattern.exec(table) ?? []
  if (namespace === undefined || name === undefined)
    throw new Error(`"${table}" is not the name of a table: write "namespace.table" or "namespace:instanceId.table"`)
  return { namespace, table: name, ...(instanceId === undefined ? {} : { instanceId }) }
}

/** Query parameters as in a URL. */
const asQuery = (query: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(query)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  )

/** `records` are the endpoints of the records feature. */
export function createRoomDatabase(records: readonly Endpoint[], newId: () => string): RoomDatabase {
  const endpoints = new Map(records.map((endpoint) => [endpoint.name, endpoint]))

  async function call(
    name: string,
    table: string,
    { id, query = {}, body }: { id?: string; query?: Readonly<Record<string, unknown>>; body?: unknown },
  ): Promise<unknown> {
    const endpoint = endpoints.get(name)
    if (!endpoint) throw new Error(`Unknown endpoint ${name}`)
    const params = parseTable(table)
    const reply = await endpoint.handle({
      params: id === undefined ? params : { ...params, id },
      query: endpoint.query ? createParameterReader(endpoint.query)(asQuery(query)) : undefined,
      body: endpoint.body ? validate(endpoint.body, JSON.parse(JSON.stringify(body))) : undefined,
      caller,
      headers: new Headers(),
      method: endpoint.method,
      path: '',
      requestId: `room-${newId()}`,
      address: '',
      url: '/',
      signal: new AbortController().signal,
      rawBody: emptyBody(),
    })
    const text = textOf(reply)
    return text === null ? null : JSON.parse(text)
  }

  return {
    list: (table, query = {}) => call('records.list', table, { query }),
    get: (table, id) => call('records.get', table, { id }),
    insert: (table, data) => call('records.insert', table, { body: data }),
    update: (table, id, data) => call('records.update', table, { id, body: data }),
    delete: (table, id) => call('records.delete', table, { id }),
  }
}
