/** Endpoints that read key-value stores with GET, for administrators: entries with sizes and times, and one value. */
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { KvNamespace } from '../../config/sections/kv/kv.ts'
import { notFound } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../http/input/query-schema.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import { kvListed, kvListKeysMax } from '../../limits/resources.ts'
import { type KvEndpointDeps, keyParam, keyText, scopeOf } from './endpoints.ts'
import type { ListedEntry } from './entries.ts'

const entrySchema = z.object({
  key: z.string(),
  valueBytes: z.int().meta({ description: 'Of the value as JSON' }),
  writtenAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
})

const format = ({ key, valueBytes, writtenAtMs, expiresAtMs }: ListedEntry): z.output<typeof entrySchema> => ({
  key,
  valueBytes,
  writtenAt: formatDatetime(writtenAtMs),
  expiresAt: expiresAtMs === null ? null : formatDatetime(expiresAtMs),
})

const common = {
  tag: 'Key-value',
  credentials: 'service',
  scope: ({ namespace = '' }: { readonly namespace?: string }) => scopeOf(namespace, 'read'),
  rateLimit: 'auth',
  errors: [404],
} as const

export function createBrowseEndpoints(deps: KvEndpointDeps): readonly Endpoint[] {
  const { entries, namespaces, responseBytes } = deps
  const cursors = createListCursors<[key: string]>(deps.secret, 'kv entries')
  const requireNamespace = (name = ''): KvNamespace => {
    const namespace = namespaces().get(name)
    if (!namespace) throw notFound('Namespace')
    return namespace
  }
  return [
    endpoint({
      ...common,
      name: 'kv.list',
      method: 'GET',
      paths: ['/api/kv/:namespace'],
      summary: 'List the entries of a namespace without their values',
      query: z.object({
        prefix: keyText.optional().meta({ description: 'Prefix of the keys' }),
        limit: limitParam({ default: kvListed, max: kvListKeysMax }),
        cursor: cursorParam(),
      }),
      replies: {
        200: {
          description: 'Ordered by key; `cursor` is null on the last page',
          schema: z.object({ items: z.array(entrySchema), cursor: z.string().nullable() }),
        },
      },
      async handle({ params, query: { prefix = '', limit, cursor } }) {
        const { name } = requireNamespace(params.namespace)
        const [after] = cursor === undefined ? [null] : cursors.parse([name, prefix], cursor)
        const { entries: found, hasMore } = await entries.browse(name, { prefix, after, limit })
        const { items, isCut } = await fitItems(found.map(format), itemBytesMax(responseBytes()))
        const last = hasMore || isCut ? items.at(-1) : undefined
        return json({ items, cursor: last ? cursors.format([name, prefix], [last.key]) : null })
      },
    }),
    endpoint({
      ...common,
      name: 'kv.get',
      method: 'GET',
      paths: ['/api/kv/:namespace/entry'],
      summary: 'Get an entry of a namespace with its value',
      query: z.object({ key: keyParam }),
      replies: { 200: { description: 'The entry', schema: entrySchema.extend({ value: z.unknown() }) } },
      async handle({ params, query: { key } }) {
        const { name } = requireNamespace(params.namespace)
        const found = await entries.findEntry(name, key)
        if (!found) throw notFound('Key')
        // The stored text is sent unchanged.
        return jsonText(`${JSON.stringify(format(found)).slice(0, -1)},"value":${found.value}}`)
      },
    }),
  ]
}
