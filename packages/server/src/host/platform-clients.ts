/** The parts of `ctx` that have no client of their own: key-value stores, vector indexes and push. */
import { parseDuration } from '../base/text/duration.ts'
import type { KeyValueStore, PushSender, VectorIndex } from '../config/sections/functions/context.ts'

/** Sends JSON to the server and returns the JSON of the answer. */
export type Post = <T = unknown>(path: string, body: unknown) => Promise<T>

/** How the clients below send what changes something and what does not. */
export interface Posts {
  readonly write: Post
  readonly read: Post
}

export function createKv({ write, read }: Posts, namespace: string): KeyValueStore {
  const path = `/api/kv/${encodeURIComponent(namespace)}`
  return {
    async get(key) {
      return (await read<{ value: unknown }>(path, { action: 'get', key })).value
    },
    async set(key, value, { ttl } = {}) {
      await write(path, { action: 'set', key, value, ...(ttl && { ttl: parseDuration(ttl) / 1000 }) })
    },
    async delete(key) {
      await write(path, { action: 'delete', key })
    },
    list: (options = {}) => read(path, { action: 'list', ...options }),
  }
}

export function createVector({ write, read }: Posts, index: string): VectorIndex {
  const path = `/api/vector/${encodeURIComponent(index)}`
  return {
    upsert: (vectors) => write(path, { action: 'upsert', vectors }),
    insert: (vectors) => write(path, { action: 'insert', vectors }),
    search: (query) => read(path, { action: 'search', ...query }),
    getByIds: (ids) => read(path, { action: 'getByIds', ids }),
    delete: (ids) => write(path, { action: 'delete', ids }),
  }
}

export const createPush = (post: Post): PushSender => ({
  send: (userId, payload) => post('/api/push/send', { userId, payload }),
  sendMany: (userIds, payload) => post('/api/push/send-many', { userIds, payload }),
  sendToTopic: (topic, payload) => post('/api/push/send-to-topic', { topic, payload }),
  broadcast: (payload) => post('/api/push/broadcast', { payload }),
})
