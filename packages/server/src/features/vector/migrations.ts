/** Tables of vector indexes: the list of indexes, and one table of vectors for each. `rows` owns their contents. */
import { ConfigError } from '../../config/issues.ts'
import type { VectorIndexDefinition } from '../../config/sections/vector/vector.ts'
import type { Dialect, TableRef } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable } from '../../engines/sql/platform-tables.ts'
import type { Database, Reader, Sql, Transaction } from '../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { createResponsesTable } from '../../engines/sql/stored-responses.ts'

/** Declared namespaces cannot start with an underscore. */
export const vectorNamespace = '_vector'

const indexes = platformTable(vectorNamespace, 'indexes')
const nameOf = (number: number): string => `vectors_${number}`
const vectorsOf = (number: number): TableRef => platformTable(vectorNamespace, nameOf(number))

export const vectorTableSteps: readonly PlatformStep[] = [
  ({ target, columnTypes }) => [
    sql`CREATE TABLE ${target(indexes)} (name ${{ text: columnTypes.text, values: [] }} PRIMARY KEY,
      number BIGINT NOT NULL UNIQUE, dimensions BIGINT NOT NULL, metric TEXT NOT NULL, version BIGINT NOT NULL,
      forgotten BIGINT NOT NULL, last_key BIGINT NOT NULL, size BIGINT NOT NULL)`,
  ],
  (dialect) => createResponsesTable(vectorNamespace, dialect),
]

/** A stored index, ready for statements. */
export interface StoredIndex {
  readonly definition: VectorIndexDefinition
  /** The table of its vectors, and its name in statements. */
  readonly table: TableRef
  readonly vectors: SqlText
  /** Prefix of the names of that table's indexes. */
  readonly prefix: string
}

export interface VectorTables {
  readonly database: Database
  readonly indexes: SqlText
  /** Throws `ConfigError` as `prepareIndexes` would; creates only the list of indexes. */
  checkIndexes(definitions: readonly VectorIndexDefinition[]): Promise<void>
  /**
   * Creates the tables of these indexes, or finds existing ones. Throws `ConfigError`, with nothing changed, if stored
   * vectors do not fit a definition.
   */
  prepareIndexes(definitions: readonly VectorIndexDefinition[]): Promise<readonly StoredIndex[]>
}

interface IndexRow {
  readonly number: unknown
  readonly dimensions: unknown
  readonly metric: string
  readonly size: unknown
}

export function createVectorTables(all: Sql): VectorTables {
  const database = all.database({ namespace: vectorNamespace, instanceId: null })
  const { dialect } = database
  const listed = dialect.target(indexes)

  async function findIndex(on: Reader, name: string, lock: SqlText): Promise<IndexRow | null> {
    const [known] = await on.all<IndexRow>(
      sql`SELECT number, dimensions, metric, size FROM ${listed} WHERE name = ${name}${lock}`,
    )
    return known ?? null
  }

  /** Whether the table fits the declaration. Throws if it does not and has vectors. */
  function fits({ name, dimensions, metric }: VectorIndexDefinition, known: IndexRow): boolean {
    if (Number(known.dimensions) === dimensions && known.metric === metric) return true
    if (Number(known.size) > 0)
      throw new ConfigError(
        `vector.${name}: ${known.size} stored vectors have ${known.dimensions} dimensions and the metric ${known.metric}, but ` +
          `${dimensions} dimensions and ${metric} are declared. Restore the declaration, or declare an index with ` +
          'another name and write the vectors to it',
      )
    return false
  }

  /** Returns the index's table number. An empty table that does not fit is recreated. */
  async function prepareIn(tx: Transaction, definition: VectorIndexDefinition): Promise<number> {
    const { name, dimensions, metric } = definition
    const known = await findIndex(tx, name, dialect.forUpdate)
    if (!known) {
      const [last] = await tx.all<{ number: unknown }>(sql`SELECT max(number) AS number FROM ${listed}`)
      const number = Number(last?.number ?? 0) + 1
      await tx.run(
        sql`INSERT INTO ${listed} (name, number, dimensions, metric, version, forgotten, last_key, size)
          VALUES (${name}, ${number}, ${dimensions}, ${metric}, 0, 0, 0, 0)`,
      )
      for (const statement of createStatements(dialect, number)) await tx.run(statement)
      return number
    }
    const number = Number(known.number)
    if (fits(definition, known)) return number
    await tx.run(sql`DROP TABLE ${dialect.target(vectorsOf(number))}`)
    for (const statement of createStatements(dialect, number)) await tx.run(statement)
    // Versions and keys continue: copies discard what they know of the old table.
    await tx.run(
      sql`UPDATE ${listed} SET dimensions = ${dimensions}, metric = ${metric}, version = version + 1,
        forgotten = version + 1 WHERE name = ${name}`,
    )
    return number
  }

  return {
    database,
    indexes: listed,
    async checkIndexes(definitions) {
      for (const definition of definitions) {
        const known = await findIndex(database, definition.name, sql``)
        if (known) fits(definition, known)
      }
    },
    prepareIndexes(definitions) {
      return database.write(
        async (tx) => {
          await tx.lock('vector indexes')
          const stored: StoredIndex[] = []
          for (const definition of definitions) {
            const number = await prepareIn(tx, definition)
            const table = vectorsOf(number)
            stored.push({ definition, table, vectors: dialect.target(table), prefix: nameOf(number) })
          }
          return stored
        },
        { isMigration: true },
      )
    },
  }
}

/**
 * A vector's key is permanent; its version is the index's version when it was last written. A row without an id is a
 * tombstone, from which copies learn of the deletion.
 */
function createStatements({ target, columnTypes, floats }: Dialect, number: number): readonly SqlText[] {
  const typed = (type: string): SqlText => ({ text: type, values: [] })
  const text = typed(columnTypes.text)
  const vectors = target(vectorsOf(number))
  return [
    sql`CREATE TABLE ${vectors} (key BIGINT PRIMARY KEY, version BIGINT NOT NULL UNIQUE, id ${text} UNIQUE,
      namespace ${text} NOT NULL, metadata ${typed(columnTypes.json)}, floats ${typed(floats.columnType)})`,
    sql`CREATE INDEX ${ident(`${nameOf(number)}_deleted`)} ON ${vectors} (version) WHERE id IS NULL`,
  ]
}
