/** Statements for SQL databases, as the holder of a service key sends them. */
import type { Answer, Client } from '../client.ts'

/** Runs `query` in a database; without `params` the request has none. What either is, is the test's choice. */
export const exec = (
  server: { readonly service: Client },
  query: unknown,
  params?: unknown,
  database = 'main',
): Promise<Answer> => server.service.post(`/api/sql/${database}`, { query, params })
