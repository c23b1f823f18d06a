/** HTTP endpoint of vector indexes: one path, seven actions. */

import { callerKey } from '../../access/caller.ts'
import { permitsScope, scopeMissing } from '../../access/service-keys.ts'
import type { Clock } from '../../base/clock.ts'
import { z } from '../../base/schemas/z.ts'
import { notFound } from '../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { vectorBodyBytesMax } from '../../limits/resources.ts'
import { commandBody, kindOf, scopeOf, type VectorCommand } from './commands.ts'
import { parseVectors } from './input.ts'
import type { VectorQueries } from './queries.ts'
import type { VectorRows } from './rows.ts'
import type { ServedIndex, ServedIndexes } from './served-indexes.ts'
import type { VectorWrites } from './writes.ts'

const floats = z.array(z.number())
const metadata = z.record(z.string(), z.unknown()).nullable()
const written = z.object({ ok: z.literal(true), count: z.number(), ids: z.array(z.string()) })
const truncated = z
  .literal(true)
  .optional()
  .meta({ description: 'Present if the result was truncated to fit into the response' })
const found = z.object({
  matches: z.array(
    z.object({
      id: z.string(),
      score: z.number(),
      namespace: z.string().optional(),
      values: floats.optional(),
      metadata: metadata.optional(),
    }),
  ),
  count: z.number(),
  truncated,
})
const fetched = z.object({
  vectors: z.array(z.object({ id: z.string(), values: floats, metadata, namespace: z.string().nullable() })),
  truncated,
})
const described = z.object({ vectorCount: z.number(), dimensions: z.number(), metric: z.string() })

export interface VectorEndpointDeps {
  readonly indexes: ServedIndexes
  readonly rows: VectorRows
  readonly writes: VectorWrites
  readonly queries: VectorQueries
  readonly clock: Clock
}

export function createVectorEndpoints({
  indexes,
  rows,
  writes,
  queries,
  clock,
}: VectorEndpointDeps): readonly Endpoint[] {
  /** Checks the scope before the index, so that 401 does not reveal whether an index exists. */
  function getIndex({ params, caller, body }: Call<unknown, VectorCommand>): ServedIndex {
    const { index: name = '' } = params
    const scopes = caller.kind === 'service' ? caller.scopes : []
    if (!permitsScope(scopes, scopeOf(name, kindOf[body.action]))) throw scopeMissing(caller)
    const index = indexes.find(name)
    if (!index) throw notFound('Vector index')
    return index
  }

  return [
    endpoint({
      name: 'vector.perform',
      isExpensive: true,
      method: 'POST',
      paths: ['/api/vector/:index'],
      tag: 'Vector',
      summary: 'Write, search, fetch or delete vectors of an index, or describe it',
      description:
        'Needs the scope `vector:index:{index}:write` for `upsert`, `insert` and `delete`, `vector:index:{index}:query` for the others. An `insert` with an existing id returns 409 and inserts nothing.',
      credentials: 'service',
      scope: ({ index = '' }) => [scopeOf(index, 'query'), scopeOf(index, 'write')],
      rateLimit: 'auth',
      body: commandBody,
      changes: ({ action }) => kindOf[action] === 'write',
      bodyBytesMax: vectorBodyBytesMax,
      replies: {
        200: {
          description: 'The written or deleted ids, the matches (best first), the vectors, or the description',
          schema: z.union([written, found, fetched, described]),
        },
      },
      errors: [404, 409, 503],
      async handle(call) {
        const index = getIndex(call)
        const { stored, searcher, sizeMax } = index
        const { body: command, caller, effectKey } = call
        const effect = { effectKey, caller: callerKey(caller), nowMs: clock.now() }
        switch (command.action) {
          case 'upsert':
          case 'insert': {
            const vectors = parseVectors(command.vectors, command.namespace ?? '', stored.definition)
            const options = { replaces: command.action === 'upsert', sizeMax }
            const ids = await writes.put(stored, vectors, options, effect)
            searcher.notice()
            return json({ ok: true, count: ids.length, ids })
          }
          case 'delete': {
            const ids = await writes.remove(stored, [...new Set(command.ids)], effect)
            searcher.notice()
            return json({ ok: true, count: ids.length, ids })
          }
          case 'search':
          case 'queryById':
            return queries.search(index, command, caller)
          case 'getByIds':
            return queries.getByIds(stored, command.ids, caller)
          case 'describe': {
            const { dimensions, metric } = stored.definition
            const { size } = await rows.state(stored)
            return json({ vectorCount: size, dimensions, metric })
          }
        }
      },
    }),
  ]
}
