/** Requests of the key-value run, over HTTP and to Redis: the same keys and values in the same order. */

import type { LoadRequest } from '../load/load-requests.ts'
import { hash } from '../setup/data.ts'
import { serviceKey } from '../setup/processes.ts'
import { formatCommand, type RedisCommand } from './kv-redis-load.ts'

/** Namespace of `bench/plinth.config.ts`. */
export const kvNamespace = 'cache'
export const keyCount = 10_000

export const keyAt = (index: number): string => `session:${String(hash(index) % keyCount).padStart(5, '0')}`

/** Some 200 bytes of JSON, like a session. */
export const valueAt = (index: number) => ({
  key: keyAt(index),
  index,
  user: `user-${hash(index + 1) % keyCount}`,
  roles: ['editor', 'author'],
  seenAt: '2026-01-31T12:00:00.000Z',
  cart: [{ item: hash(index + 2) % 1000, count: 2 }],
  note: 'x'.repeat(40),
})

/** A request with the service key. */
function kvRequest(command: object, includes: string): LoadRequest {
  const body = JSON.stringify(command)
  const head = [
    `POST /api/kv/${kvNamespace} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `X-Platform-Service-Key: ${serviceKey}`,
    `Content-Length: ${body.length}`,
  ]
  return { text: `${head.join('\r\n')}\r\n\r\n${body}`, expect: { status: 200, includes } }
}

const many = <T>(make: (index: number) => T, count = keyCount): T[] =>
  Array.from({ length: count }, (_, at) => make(at))

export const gets = (): LoadRequest[] =>
  many((index) => kvRequest({ action: 'get', key: keyAt(index) }, `"${keyAt(index)}"`))
export const sets = (): LoadRequest[] =>
  many((index) => kvRequest({ action: 'set', key: keyAt(index), value: valueAt(index) }, '{"ok":true}'))

export const redisGets = (): RedisCommand[] =>
  many((index) => ({ text: formatCommand('GET', keyAt(index)), kind: '$', includes: `"${keyAt(index)}"` }))
export const redisSets = (): RedisCommand[] =>
  many((index) => ({
    text: formatCommand('SET', keyAt(index), JSON.stringify(valueAt(index))),
    kind: '+',
    includes: '+OK',
  }))
