/**
 * The set-ups for tests of vector indexes: every engine with in-memory search, and PostgreSQL with pgvector if it is
 * available.
 */
import { afterAll, beforeAll, describe } from 'bun:test'
import type { VectorConfig } from '../../../src/config/sections/vector/define-vector.ts'
import type { Answer, Client } from '../client.ts'
import { createDatabase } from '../databases.ts'
import { type Engine, engines } from '../engines.ts'
import { createServer, type TestServer } from '../server.ts'

/** An engine and the implementation of its searches. */
export interface VectorKind {
  readonly name: string
  readonly storage: Engine
  readonly engine: 'memory' | 'pgvector'
}

const pgvectorUrl = process.env.PLINTH_TEST_PGVECTOR_URL

const postgresWithPgvector = (url: string): Engine => ({
  name: 'postgres-pgvector',
  async openStorage() {
    const database = await createDatabase(url)
    return { settings: { databaseUrl: database.url }, elapse: async () => {}, remove: () => database.drop() }
  },
})

export const vectorKinds: readonly VectorKind[] = [
  ...engines.map((storage) => ({ name: storage.name, storage, engine: 'memory' as const })),
  ...(pgvectorUrl
    ? [{ name: 'postgres-pgvector', storage: postgresWithPgvector(pgvectorUrl), engine: 'pgvector' as const }]
    : []),
]

type Indexes = Readonly<Record<string, VectorConfig>>

/** The vector section of a configuration for this kind. */
export const onKind = ({ engine }: VectorKind, indexes: Indexes) => ({
  vector: Object.fromEntries(Object.entries(indexes).map(([name, index]) => [name, { engine, ...index }])),
})

/** Runs the tests of `body` on every kind, each with a server of its own. */
export function describeVectors(
  title: string,
  config: { readonly indexes: Indexes; readonly [section: string]: unknown },
  body: (server: TestServer, kind: VectorKind) => void,
): void {
  const { indexes, ...sections } = config
  for (const kind of vectorKinds)
    describe(`${title} on ${kind.name}`, () => {
      const server = createServer({ config: { ...sections, ...onKind(kind, indexes) } }, kind.storage)
      beforeAll(() => server.open())
      afterAll(() => server.close())
      body(server, kind)
    })
}

/** Sends an action to an index. */
export const perform = (client: Client, index: string, action: string, rest: object = {}): Promise<Answer> =>
  client.post(`/api/vector/${index}`, { action, ...rest })

/** Sends an action with the root key; throws unless it succeeds. Returns the body. */
export async function use(server: TestServer, index: string, action: string, rest: object = {}) {
  const { status, body, text } = await perform(server.service, index, action, rest)
  if (status !== 200) throw new Error(`${action}: ${status} ${text.slice(0, 500)}`)
  return body
}

/** Access to vector indexes, for the endpoint matrix. */
export const vectorMatrix = {
  'vector.perform': {
    kind: 'service',
    scope: 'vector:index:denied:query',
    send: (client: Client): Promise<Answer> => perform(client, 'denied', 'describe'),
  },
} as const
export const vectorScopes = ['vector:index:denied:query', 'vector:index:denied:write', 'vector:index:other:*'] as const

/** The description of an index and its vectors with these ids. */
export const dumpIndex = async (server: TestServer, index: string, ids: readonly string[]) => [
  await use(server, index, 'describe'),
  await use(server, index, 'getByIds', { ids }),
]

/** A seeded generator of numbers from -1 to 1. */
export function createNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state / 2 ** 31 - 1) as number
  }
}

/** The values of a vector, rounded as they are stored. */
export const makeValues = (next: () => number, dimensions: number): number[] => [
  ...Float32Array.from({ length: dimensions }, next),
]
