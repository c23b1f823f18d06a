/**
 * Key-value stores. Authorizes commands, resolves namespaces, validates values and calls `entries`, which owns rows and
 * expiry.
 */

import { permitsScope } from '../../access/service-keys.ts'
import type { Clock } from '../../base/clock.ts'
import type { KvNamespace } from '../../config/sections/kv.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { invalidField, invalidServiceKey, notFound, payloadTooLarge } from '../../errors.ts'
import type { Call } from '../../http/endpoint.ts'
import { isExactJson, JsonText } from '../../http/input/json-parse.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import { kvBodyExtraBytes, kvListKeysMax } from '../../limits/resources.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { type KvCommand, kvEndpoints, scopeOf } from './endpoints.ts'
import { createEntries } from './entries.ts'

export interface KvDeps {
  readonly sql: Sql
  /** The declared namespaces; data of others is kept but not served. */
  readonly namespaces: () => ReadonlyMap<string, KvNamespace>
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes; a single value may exceed it. */
  readonly responseBytes: () => number
  readonly clock: Clock
}

const done = json({ ok: true })

const kindOf: Readonly<Record<KvCommand['action'], 'read' | 'write'>> = {
  get: 'read',
  list: 'read',
  set: 'write',
  delete: 'write',
}

export function createKv({ sql, namespaces, secret, responseBytes, clock }: KvDeps): Feature {
  const entries = createEntries(sql, clock)
  const cursors = createListCursors<[key: string]>(secret, 'kv list')
  let prepared: Promise<void> | null = null

  /** Checks the scope before the namespace, so that 401 does not reveal whether a namespace exists. */
  function admit({ params, caller, body }: Call<unknown, KvCommand>): KvNamespace {
    const { namespace: name = '' } = params
    const scopes = caller.kind === 'service' ? caller.scopes : []
    if (!permitsScope(scopes, scopeOf(name, kindOf[body.action]))) throw invalidServiceKey()
    const namespace = namespaces().get(name)
    if (!namespace) throw notFound('Namespace')
    return namespace
  }

  async function list({ name }: KvNamespace, command: KvCommand & { action: 'list' }) {
    const { prefix, cursor, limit } = command
    const after = typeof cursor === 'string' ? cursors.parse([name, prefix], cursor)[0] : null
    const range = { prefix, after, limit: Math.min(limit, kvListKeysMax) }
    const { keys: found, hasMore } = await entries.list(name, range)
    const { items: keys, isCut } = await fitItems(found, itemBytesMax(responseBytes()))
    const last = hasMore || isCut ? keys.at(-1) : undefined
    const next = last === undefined ? null : cursors.format([name, prefix], [last])
    return json({ keys, cursor: next, ...(isCut ? { truncated: true } : {}) })
  }

  return {
    name: 'kv',
    endpoints: kvEndpoints({
      bodyBytesMax: ({ namespace = '' }) => (namespaces().get(namespace)?.valueBytesMax ?? 0) + kvBodyExtraBytes,

      async perform(call) {
        const namespace = admit(call)
        const { body: command } = call
        switch (command.action) {
          case 'get':
            // The stored text is sent unchanged.
            return jsonText(`{"value":${(await entries.find(namespace.name, command.key)) ?? 'null'}}`)
          case 'set': {
            const value = formatValue(command.value, namespace.valueBytesMax)
            await entries.put(namespace, command.key, value, command.ttl ?? null)
            return done
          }
          case 'delete':
            await entries.remove(namespace, command.key)
            return done
          case 'list':
            return list(namespace, command)
        }
      },
    }),

    /** Creates the tables when the first namespace is declared. */
    async configure({ kv: configured }) {
      if (configured.size === 0) return
      prepared ??= entries.prepare().catch((error) => {
        prepared = null
        throw error
      })
      await prepared
    },

    jobs: [
      {
        name: 'kv.sweep',
        intervalMs: housekeepingIntervalMs,
        async run() {
          if (prepared) await entries.sweep()
        },
      },
    ],
  }
}

/**
 * Serializes a value for storage: JSON with numbers in the range of a double. Throws 400, and 413 for too many bytes.
 */
function formatValue(value: unknown, bytesMax: number): string {
  const { text, isExact } =
    value instanceof JsonText ? value : { text: JSON.stringify(value), isExact: isExactJson(value) }
  if (!isExact) throw invalidField('value', 'type', 'must not contain numbers beyond the range of a double')
  if (Buffer.byteLength(text) > bytesMax) throw payloadTooLarge(bytesMax, 'value')
  return text
}
