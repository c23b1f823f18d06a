/**
 * The endpoint of key-value stores: one path, four actions. Authorizes commands, resolves namespaces and validates
 * values; `entries` stores them.
 */

import { callerKey } from '../../access/caller.ts'
import { permitsScope, scopeMissing } from '../../access/service-keys.ts'
import { z } from '../../base/schemas/z.ts'
import { isStorableText } from '../../base/text/text.ts'
import type { KvNamespace } from '../../config/sections/kv/kv.ts'
import { invalidField, notFound, payloadTooLarge } from '../../errors.ts'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { isExactJson, JsonText } from '../../http/input/json-parse.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors, type ListCursors } from '../../http/replies/list-cursor.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import {
  kvBodyExtraBytes,
  kvKeyBytesMax,
  kvListKeysMax,
  kvTtlSecondsMax,
  kvTtlSecondsMin,
} from '../../limits/resources.ts'
import type { Entries } from './entries.ts'

export const keyText = z
  .string()
  .refine(isStorableText, { message: 'must be well-formed text without NUL', params: { code: 'pattern' } })
  .refine((text) => Buffer.byteLength(text) <= kvKeyBytesMax, {
    message: `must have at most ${kvKeyBytesMax} bytes of UTF-8`,
    params: { code: 'max' },
  })

export const keyParam = keyText.min(1).meta({ description: `1 to ${kvKeyBytesMax} bytes of UTF-8` })

const value = z
  .unknown()
  .refine((given) => given !== undefined, { message: 'is required', params: { code: 'required' } })
  .meta({ description: 'Any JSON value' })

const commandBody = z.discriminatedUnion('action', [
  z.object({ action: z.literal('get'), key: keyParam }),
  z.object({
    action: z.literal('set'),
    key: keyParam,
    value,
    ttl: z
      .int()
      .min(kvTtlSecondsMin)
      .max(kvTtlSecondsMax)
      .optional()
      .meta({ description: 'Seconds until the key expires; never by default' }),
  }),
  z.object({ action: z.literal('delete'), key: keyParam }),
  z.object({
    action: z.literal('list'),
    prefix: keyText.default('').meta({ description: 'Prefix of the keys' }),
    limit: z
      .int()
      .min(1)
      .default(kvListKeysMax)
      .meta({ description: `At most ${kvListKeysMax}, which is also the default` }),
    cursor: z.string().nullish().meta({ description: 'Cursor of the previous page' }),
  }),
])

/** The scope that a service key needs for actions of one kind. */
export const scopeOf = (namespace: string, kind: 'read' | 'write'): string => `kv:namespace:${namespace}:${kind}`

type Command = z.output<typeof commandBody>

const kindOf: Readonly<Record<Command['action'], 'read' | 'write'>> = {
  get: 'read',
  list: 'read',
  set: 'write',
  delete: 'write',
}

const done = json({ ok: true })

export interface KvEndpointDeps {
  readonly entries: Entries
  /** The declared namespaces; data of others is kept but not served. */
  readonly namespaces: () => ReadonlyMap<string, KvNamespace>
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes; a single value may exceed it. */
  readonly responseBytes: () => number
}

export function createKvEndpoint(deps: KvEndpointDeps): Endpoint {
  const { entries, namespaces } = deps
  const cursors = createListCursors<[key: string]>(deps.secret, 'kv list')
  return endpoint({
    name: 'kv.perform',
    method: 'POST',
    paths: ['/api/kv/:namespace'],
    tag: 'Key-value',
    summary: 'Get, set, delete or list keys of a namespace',
    description:
      'Needs the scope `kv:namespace:{namespace}:read` for `get` and `list`, `kv:namespace:{namespace}:write` for `set` and `delete`. Writing a key again within the namespace’s write interval returns 429.',
    credentials: 'service',
    scope: ({ namespace = '' }) => [scopeOf(namespace, 'read'), scopeOf(namespace, 'write')],
    rateLimit: 'auth',
    body: commandBody,
    changes: ({ action }) => kindOf[action] === 'write',
    bodyBytesMax: ({ namespace = '' }) => (namespaces().get(namespace)?.valueBytesMax ?? 0) + kvBodyExtraBytes,
    textMembers: ['value'],
    replies: {
      200: {
        description: 'The value of `get` (null if absent), the keys of `list`, or `ok` for writes',
        schema: z.union([
          z.object({ value: z.unknown() }),
          z.object({ ok: z.literal(true) }),
          z.object({
            keys: z.array(z.string()),
            cursor: z.string().nullable(),
            truncated: z.literal(true).optional(),
          }),
        ]),
      },
    },
    errors: [404, 429],
    async handle(call) {
      const namespace = authorize(call, namespaces())
      const { body: command, effectKey } = call
      const caller = callerKey(call.caller)
      switch (command.action) {
        case 'get':
          // The stored text is sent unchanged.
          return jsonText(`{"value":${(await entries.find(namespace.name, command.key)) ?? 'null'}}`)
        case 'set': {
          const value = formatValue(command.value, namespace.valueBytesMax)
          await entries.put({ namespace, key: command.key, effectKey, caller }, value, command.ttl ?? null)
          return done
        }
        case 'delete':
          await entries.remove({ namespace, key: command.key, effectKey, caller })
          return done
        case 'list':
          return listKeys(namespace, command, cursors, deps)
      }
    },
  })
}

/** The namespace of a call. Checks the scope first, so that 401 does not reveal whether a namespace exists. */
function authorize(
  { params, caller, body }: Call<unknown, Command>,
  namespaces: ReadonlyMap<string, KvNamespace>,
): KvNamespace {
  const { namespace: name = '' } = params
  const scopes = caller.kind === 'service' ? caller.scopes : []
  if (!permitsScope(scopes, scopeOf(name, kindOf[body.action]))) throw scopeMissing(caller)
  const namespace = namespaces.get(name)
  if (!namespace) throw notFound('Namespace')
  return namespace
}

async function listKeys(
  { name }: KvNamespace,
  { prefix, cursor, limit }: Command & { readonly action: 'list' },
  cursors: ListCursors<[key: string]>,
  { entries, responseBytes }: KvEndpointDeps,
): Promise<Reply> {
  const after = typeof cursor === 'string' ? cursors.parse([name, prefix], cursor)[0] : null
  const range = { prefix, after, limit: Math.min(limit, kvListKeysMax) }
  const { keys: found, hasMore } = await entries.list(name, range)
  const { items: keys, isCut } = await fitItems(found, itemBytesMax(responseBytes()))
  const last = hasMore || isCut ? keys.at(-1) : undefined
  const next = last === undefined ? null : cursors.format([name, prefix], [last])
  return json({ keys, cursor: next, ...(isCut ? { truncated: true } : {}) })
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
