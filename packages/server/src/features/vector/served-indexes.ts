/**
 * The indexes in service: prepares those of a configuration, chooses the engine of their searches, and closes those
 * that were removed or changed.
 */
import { ConfigError } from '../../config/issues.ts'
import type { VectorIndexDefinition } from '../../config/sections/vector/vector.ts'
import { preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { VectorSource, Vectors } from '../../engines/vectors/vectors.ts'
import { pgvectorDimensionsMax, vectorMemoryBytesMax } from '../../limits/resources.ts'
import { type StoredIndex, type VectorTables, vectorNamespace, vectorTableSteps } from './migrations.ts'
import type { Pgvector } from './pgvector.ts'
import type { VectorRows } from './rows.ts'
import { openMemorySearcher, type Searcher } from './search.ts'

export interface ServedIndex {
  readonly stored: StoredIndex
  readonly searcher: Searcher
  /** Changes with the index's declaration and search engine. */
  readonly fingerprint: string
  /** Largest number of vectors. */
  readonly sizeMax: number
}

/** An index before it is in service. */
interface PreparedIndex {
  readonly stored: StoredIndex
  readonly isInDatabase: boolean
}

export interface ServedIndexesDeps {
  readonly tables: VectorTables
  readonly rows: VectorRows
  readonly pgvector: Pgvector
  /** In-memory copies of vectors, for searches. */
  readonly vectors: Vectors
}

export class ServedIndexes {
  readonly #tables: VectorTables
  readonly #rows: VectorRows
  readonly #pgvector: Pgvector
  readonly #vectors: Vectors
  #served: ReadonlyMap<string, ServedIndex> = new Map()

  constructor({ tables, rows, pgvector, vectors }: ServedIndexesDeps) {
    this.#tables = tables
    this.#rows = rows
    this.#pgvector = pgvector
    this.#vectors = vectors
  }

  find(name: string): ServedIndex | null {
    return this.#served.get(name) ?? null
  }

  /** Creates the tables of these indexes and serves these only. */
  async configure(definitions: readonly VectorIndexDefinition[]): Promise<void> {
    if (definitions.length === 0) return this.#serve([])
    await preparePlatformTables(this.#tables.database, vectorNamespace, 'vector', vectorTableSteps)
    this.#serve(await this.#prepare(definitions))
  }

  async #prepare(definitions: readonly VectorIndexDefinition[]): Promise<readonly PreparedIndex[]> {
    const inDatabase: boolean[] = []
    for (const definition of definitions) inDatabase.push(await this.#isInDatabase(definition))
    const stored = await this.#tables.prepareIndexes(definitions)
    for (const [at, index] of stored.entries())
      if (inDatabase[at]) await this.#pgvector.prepareIndex(index)
      else await this.#pgvector.removeIndex(index)
    return stored.map((index, at) => ({ stored: index, isInDatabase: inDatabase[at] === true }))
  }

  /** Whether searches of the index run in the database. Throws if they must and cannot. */
  async #isInDatabase({ name, engine, dimensions }: VectorIndexDefinition): Promise<boolean> {
    if (engine === 'memory' || dimensions > pgvectorDimensionsMax) return false
    const isThere = await this.#pgvector.find()
    if (!isThere && engine === 'pgvector')
      throw new ConfigError(
        `vector.${name}.engine: "pgvector" needs PostgreSQL (DATABASE_URL) with pgvector 0.8 or newer`,
      )
    return isThere
  }

  /** Puts these indexes into service and first closes those that were removed or changed. */
  #serve(prepared: readonly PreparedIndex[]): void {
    const fingerprints = prepared.map(({ stored, isInDatabase }) => JSON.stringify([stored.definition, isInDatabase]))
    const kept = new Set(fingerprints)
    for (const { searcher, fingerprint } of this.#served.values()) if (!kept.has(fingerprint)) searcher.close()
    this.#served = new Map(
      prepared.map((index, at) => {
        const { name } = index.stored.definition
        const fingerprint = fingerprints[at] as string
        const before = this.#served.get(name)
        return [name, before?.fingerprint === fingerprint ? before : this.#open(index, fingerprint)]
      }),
    )
  }

  #open({ stored, isInDatabase }: PreparedIndex, fingerprint: string): ServedIndex {
    const { name, dimensions, metric, metadataIndexes } = stored.definition
    if (isInDatabase) {
      const searcher = this.#pgvector.openSearcher(stored)
      return { stored, searcher, fingerprint, sizeMax: Number.POSITIVE_INFINITY }
    }
    const rows = this.#rows
    const source: VectorSource = {
      readChanges: (after, begun, rowsMax) => rows.readChanges(stored, after, begun, rowsMax),
    }
    const index = this.#vectors.openIndex({ name, dimensions, metric, metadataIndexes, source })
    index.follow()
    const sizeMax = Math.floor(vectorMemoryBytesMax / (Float32Array.BYTES_PER_ELEMENT * dimensions))
    return { stored, searcher: openMemorySearcher(stored, rows, index), fingerprint, sizeMax }
  }
}
