/**
 * Vector indexes. Authorizes commands and calls operations on rows and searches. `rows` stores vectors; `search` and
 * `pgvector` find them.
 */

import { permitsScope } from '../../access/service-keys.ts'
import type { Log } from '../../base/log.ts'
import { ConfigError } from '../../config/issues.ts'
import type { VectorIndexDefinition } from '../../config/sections/vector.ts'
import { preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import type { VectorSource, Vectors } from '../../engines/vectors/vectors.ts'
import { invalidServiceKey, notFound } from '../../errors.ts'
import type { Call } from '../../http/endpoint.ts'
import type { ResponseLimits } from '../../http/replies/large-responses.ts'
import { json } from '../../http/replies/reply.ts'
import { pgvectorDimensionsMax, vectorMemoryBytesMax } from '../../limits/resources.ts'
import type { Feature } from '../feature.ts'
import { scopeOf, type VectorCommand, type VectorCommandOf, vectorEndpoints } from './endpoints.ts'
import { parseFilter } from './filter.ts'
import { parseValues, parseVectors } from './input.ts'
import { type ShownMetadata, showMetadata } from './metadata.ts'
import { createVectorTables, type StoredIndex, vectorNamespace, vectorTableSteps } from './migrations.ts'
import { createPgvector } from './pgvector.ts'
import { vectorsReply } from './reply.ts'
import { createVectorRows } from './rows.ts'
import { createMemorySearcher, type Match, type Searcher } from './search.ts'

export interface VectorDeps {
  readonly sql: Sql
  /** In-memory copies of vectors, for searches. */
  readonly vectors: Vectors
  readonly limits: ResponseLimits
  readonly log: Log
}

/** An index in service. */
interface Served {
  readonly stored: StoredIndex
  readonly searcher: Searcher
  /** Changes with the index's declaration and search engine. */
  readonly fingerprint: string
  /** Largest number of vectors. */
  readonly sizeMax: number
}

/** An index before it is in service. */
interface Prepared {
  readonly stored: StoredIndex
  readonly isInDatabase: boolean
}

const actionOf: Readonly<Record<VectorCommand['action'], 'query' | 'write'>> = {
  upsert: 'write',
  insert: 'write',
  delete: 'write',
  search: 'query',
  queryById: 'query',
  getByIds: 'query',
  describe: 'query',
}

type Query = VectorCommandOf<'search'> | VectorCommandOf<'queryById'>

/**
 * Throws `ConfigError` where stored vectors do not fit these definitions. Called before a configuration takes effect,
 * so that a rejected one changes nothing.
 */
export async function checkVectors(sql: Sql, definitions: ReadonlyMap<string, VectorIndexDefinition>): Promise<void> {
  if (definitions.size === 0) return
  const { database, checkIndexes } = createVectorTables(sql)
  await preparePlatformTables(database, vectorNamespace, 'vector', vectorTableSteps)
  await checkIndexes([...definitions.values()])
}

export function createVectors({ sql, vectors, limits, log }: VectorDeps): Feature {
  const tables = createVectorTables(sql)
  const rows = createVectorRows(tables)
  const pgvector = createPgvector(tables.database, rows, log)
  let served: ReadonlyMap<string, Served> = new Map()

  /** Checks the scope before the index, so that 401 does not reveal whether an index exists. */
  function admit({ params, caller, body }: Call<unknown, VectorCommand>): Served {
    const { index: name = '' } = params
    const scopes = caller.kind === 'service' ? caller.scopes : []
    if (!permitsScope(scopes, scopeOf(name, actionOf[body.action]))) throw invalidServiceKey()
    const index = served.get(name)
    if (!index) throw notFound('Vector index')
    return index
  }

  async function put({ stored, sizeMax }: Served, command: VectorCommandOf<'upsert'> | VectorCommandOf<'insert'>) {
    const { action, vectors: written, namespace = '' } = command
    const parsed = parseVectors(written, namespace, stored.definition)
    await rows.put(stored, parsed, { replaces: action === 'upsert', sizeMax })
    return parsed.map(({ id }) => id)
  }

  /** The query vector of a search. Throws 404 if the vector to search by does not exist. */
  async function getValues({ stored }: Served, command: Query): Promise<Float32Array> {
    if (command.action === 'search') return parseValues(command.vector, stored.definition, 'vector')
    const { vectorId } = command
    const found = await rows.find(stored, [vectorId], { values: true, metadata: false })
    const values = found.get(vectorId)?.values
    if (!values) throw notFound('Vector')
    return values
  }

  async function search(index: Served, command: Query) {
    const { topK, namespace = null, returnValues, returnMetadata } = command
    const { metadataIndexes } = index.stored.definition
    const shown: ShownMetadata = returnMetadata === true ? 'all' : returnMetadata === false ? 'none' : returnMetadata
    const conditions = parseFilter(command.filter, metadataIndexes)
    const vector = await getValues(index, command)
    const wanted = { values: returnValues, metadata: shown !== 'none' }
    const found = await index.searcher.search({ vector, topK, namespace, conditions, wanted })
    const show = ({ id, score, namespace, values, metadata }: Match) => ({
      id,
      score,
      ...(namespace === '' ? {} : { namespace }),
      ...(values === null ? {} : { values: [...values] }),
      ...(shown === 'none' ? {} : { metadata: showMetadata(metadata, shown, metadataIndexes) }),
    })
    return vectorsReply({ name: 'matches', found, show, count: true }, limits)
  }

  async function getByIds({ stored }: Served, ids: readonly string[]) {
    const distinctIds = [...new Set(ids)]
    const found = await rows.find(stored, distinctIds, { values: true, metadata: true })
    const { metadataIndexes } = stored.definition
    const existing = distinctIds.flatMap((id) => {
      const vector = found.get(id)
      return vector ? [{ ...vector, id }] : []
    })
    const show = ({ id, values, metadata, namespace }: (typeof existing)[number]) => ({
      id,
      values: values === null ? [] : [...values],
      metadata: showMetadata(metadata, 'all', metadataIndexes),
      namespace: namespace === '' ? null : namespace,
    })
    return vectorsReply({ name: 'vectors', found: existing, show, count: false }, limits)
  }

  async function perform(call: Call<unknown, VectorCommand>) {
    const index = admit(call)
    const { body: command } = call
    switch (command.action) {
      case 'upsert':
      case 'insert': {
        const ids = await put(index, command)
        index.searcher.notice()
        return json({ ok: true, count: ids.length, ids })
      }
      case 'delete': {
        const ids = await rows.remove(index.stored, [...new Set(command.ids)])
        index.searcher.notice()
        return json({ ok: true, count: ids.length, ids })
      }
      case 'search':
      case 'queryById':
        return search(index, command)
      case 'getByIds':
        return getByIds(index, command.ids)
      case 'describe': {
        const { dimensions, metric } = index.stored.definition
        const { size } = await rows.state(index.stored)
        return json({ vectorCount: size, dimensions, metric })
      }
    }
  }

  /** Whether searches of the index run in the database. Throws if they must and cannot. */
  async function isInDatabase({ name, engine, dimensions }: VectorIndexDefinition): Promise<boolean> {
    if (engine === 'memory' || dimensions > pgvectorDimensionsMax) return false
    const isThere = await pgvector.find()
    if (!isThere && engine === 'pgvector')
      throw new ConfigError(
        `vector.${name}.engine: "pgvector" needs PostgreSQL (DATABASE_URL) with pgvector 0.8 or newer`,
      )
    return isThere
  }

  async function prepareAll(definitions: readonly VectorIndexDefinition[]): Promise<readonly Prepared[]> {
    const inDatabase: boolean[] = []
    for (const definition of definitions) inDatabase.push(await isInDatabase(definition))
    const stored = await tables.prepareIndexes(definitions)
    for (const [at, index] of stored.entries())
      if (inDatabase[at]) await pgvector.prepareIndex(index)
      else await pgvector.removeIndex(index)
    return stored.map((index, at) => ({ stored: index, isInDatabase: inDatabase[at] === true }))
  }

  function open({ stored, isInDatabase }: Prepared, fingerprint: string): Served {
    const { name, dimensions, metric, metadataIndexes } = stored.definition
    if (isInDatabase)
      return { stored, searcher: pgvector.openSearcher(stored), fingerprint, sizeMax: Number.POSITIVE_INFINITY }
    const source: VectorSource = {
      readChanges: (after, begun, rowsMax) => rows.readChanges(stored, after, begun, rowsMax),
    }
    const index = vectors.openIndex({ name, dimensions, metric, metadataIndexes, source })
    index.follow()
    const sizeMax = Math.floor(vectorMemoryBytesMax / (Float32Array.BYTES_PER_ELEMENT * dimensions))
    return { stored, searcher: createMemorySearcher(stored, rows, index), fingerprint, sizeMax }
  }

  /** Puts these indexes into service and first closes those that were removed or changed. */
  function serve(prepared: readonly Prepared[]): void {
    const fingerprints = prepared.map(({ stored, isInDatabase }) => JSON.stringify([stored.definition, isInDatabase]))
    const kept = new Set(fingerprints)
    for (const { searcher, fingerprint } of served.values()) if (!kept.has(fingerprint)) searcher.close()
    served = new Map(
      prepared.map((one, at) => {
        const { name } = one.stored.definition
        const fingerprint = fingerprints[at] as string
        const before = served.get(name)
        return [name, before?.fingerprint === fingerprint ? before : open(one, fingerprint)]
      }),
    )
  }

  return {
    name: 'vector',
    endpoints: vectorEndpoints(perform),
    /** Creates the tables of these indexes and serves these only. */
    async configure({ vector: definitions }) {
      if (definitions.size === 0) return serve([])
      await preparePlatformTables(tables.database, vectorNamespace, 'vector', vectorTableSteps)
      serve(await prepareAll([...definitions.values()]))
    },
  }
}
