/** A key-value client for tests, with one function per action and a dump of all entries. */
import type { Answer, Client } from '../client.ts'

export interface Store {
  get(key: unknown): Promise<Answer>
  set(key: unknown, value: unknown, more?: object): Promise<Answer>
  delete(key: unknown): Promise<Answer>
  list(options?: object): Promise<Answer>
  /** Every key with its value, to verify that a refused request changes nothing. */
  dump(): Promise<Readonly<Record<string, unknown>>>
}

export const kvPath = (namespace: string): string => `/api/kv/${namespace}`

/** A namespace accessed with this client. */
export function openStore(client: Client, namespace: string): Store {
  const perform = (command: object) => client.post(kvPath(namespace), command)
  const store: Store = {
    get: (key) => perform({ action: 'get', key }),
    set: (key, value, more) => perform({ action: 'set', key, value, ...more }),
    delete: (key) => perform({ action: 'delete', key }),
    list: (options) => perform({ action: 'list', ...options }),
    async dump() {
      const entries: [string, unknown][] = []
      let cursor: string | null = null
      do {
        const { status, body, text } = await store.list({ cursor })
        if (status !== 200) throw new Error(`cannot list ${namespace}: ${status} ${text}`)
        for (const key of body.keys) entries.push([key, (await store.get(key)).body.value])
        cursor = body.cursor
      } while (cursor !== null)
      return Object.fromEntries(entries)
    },
  }
  return store
}

/** Access to key-value namespaces, for the endpoint matrix. The scopes of the other actions have tests of their own. */
export const kvMatrix = {
  'kv.perform': {
    kind: 'service',
    scope: 'kv:namespace:denied:read',
    send: (client: Client) => client.post(kvPath('denied'), { action: 'get', key: 'x' }),
  },
  'kv.list': {
    kind: 'service',
    scope: 'kv:namespace:denied:read',
    send: (client: Client) => client.get(kvPath('denied')),
  },
  // There is no such entry: who may read gets 404.
  'kv.get': {
    kind: 'service',
    scope: 'kv:namespace:denied:read',
    isJudgedByBody: true,
    send: (client: Client) => client.get(`${kvPath('denied')}/entry?key=x`),
  },
} as const

export const kvScopes = ['kv:namespace:denied:read', 'kv:namespace:denied:write'] as const
