/** The endpoint of the declared key-value stores, SQL databases and vector indexes, which only service keys can use. */
import { z } from '../../base/schemas/z.ts'
import type { Config } from '../../config/config.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'

const storesSchema = z.object({
  kv: z.array(z.object({ name: z.string(), valueBytesMax: z.int(), writeIntervalMs: z.int() })),
  sql: z.array(z.object({ name: z.string() })),
  vector: z.array(
    z.object({ name: z.string(), dimensions: z.int(), metric: z.string(), metadataIndexes: z.array(z.string()) }),
  ),
})

export const createStoresEndpoint = (config: () => Pick<Config, 'kv' | 'sql' | 'vector'>): Endpoint =>
  endpoint({
    name: 'system.stores',
    method: 'GET',
    paths: ['/api/stores'],
    tag: 'System',
    summary: 'List the declared key-value stores, SQL databases and vector indexes',
    credentials: 'service',
    scope: () => 'schema:endpoint:*:read',
    rateLimit: 'global',
    replies: { 200: { description: 'In the order of the configuration', schema: storesSchema } },
    handle() {
      const { kv, sql, vector } = config()
      return json({
        kv: [...kv.values()].map(({ name, valueBytesMax, writeIntervalMs }) => ({
          name,
          valueBytesMax,
          writeIntervalMs,
        })),
        sql: [...sql.keys()].map((name) => ({ name })),
        vector: [...vector.values()].map(({ name, dimensions, metric, metadataIndexes }) => ({
          name,
          dimensions,
          metric,
          metadataIndexes,
        })),
      })
    },
  })
