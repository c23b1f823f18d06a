/** Sends statements to SQL databases with a service key. */
import type { Answer, Client } from '../client.ts'

/** Runs `query` in a database. Both arguments are unchecked, for tests of invalid requests. */
export const exec = (
  server: { readonly service: Client },
  query: unknown,
  params?: unknown,
  database = 'main',
): Promise<Answer> => server.service.post(`/api/sql/${database}`, { query, params })
