/** HTTP endpoint of key-value stores: one path, four actions. */
import { z } from 'zod'
import { isStorableText } from '../../base/text/text.ts'
import { type Call, type Endpoint, endpoint, type Params, type Reply } from '../../http/endpoint.ts'
import { kvKeyBytesMax, kvListKeysMax, kvTtlSecondsMax, kvTtlSecondsMin } from '../../limits/resources.ts'

const keyText = z
  .string()
  .refine(isStorableText, { message: 'must be well-formed text without NUL', params: { code: 'pattern' } })
  .refine((text) => Buffer.byteLength(text) <= kvKeyBytesMax, {
    message: `must have at most ${kvKeyBytesMax} bytes of UTF-8`,
    params: { code: 'max' },
  })

const key = keyText.min(1).meta({ description: `1 to ${kvKeyBytesMax} bytes of UTF-8` })

const value = z
  .unknown()
  .refine((given) => given !== undefined, { message: 'is required', params: { code: 'required' } })
  .meta({ description: 'Any JSON value' })

const commandBody = z.discriminatedUnion('action', [
  z.object({ action: z.literal('get'), key }),
  z.object({
    action: z.literal('set'),
    key,
    value,
    ttl: z
      .int()
      .min(kvTtlSecondsMin)
      .max(kvTtlSecondsMax)
      .optional()
      .meta({ description: 'Seconds until the key expires; never by default' }),
  }),
  z.object({ action: z.literal('delete'), key }),
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

export type KvCommand = z.output<typeof commandBody>

export interface KvHandlers {
  perform(call: Call<unknown, KvCommand>): Promise<Reply>
  /** Largest request body of a namespace, in bytes. */
  bodyBytesMax(params: Params): number
}

export function kvEndpoints({ perform, bodyBytesMax }: KvHandlers): readonly Endpoint[] {
  return [
    endpoint({
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
      bodyBytesMax,
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
      handle: perform,
    }),
  ]
}
