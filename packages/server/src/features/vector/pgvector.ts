/**
 * Searches in PostgreSQL with pgvector. Vectors are stored as the same plain arrays as without it; only an index over
 * them is added, which can be created and dropped.
 */
import type { Log } from '../../base/log.ts'
import { EngineError } from '../../engines/sql/error.ts'
import type { Database, Transaction } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { VectorCondition, VectorMetadataValue, VectorMetric } from '../../engines/vectors/vectors.ts'
import { pgvectorBuiltAtStartMax, pgvectorCandidatesMin, pgvectorComparedMax } from '../../limits/resources.ts'
import type { StoredIndex } from './migrations.ts'
import type { VectorRow, VectorRows } from './rows.ts'
import type { Match, Search, Searcher } from './search.ts'

/** The first version with iterative index scans, which continue until enough rows satisfy a condition. */
const versionMin = [0, 8] as const

/** The operator of each metric, and the score of a distance. */
const metrics = {
  cosine: { operator: sql`<=>`, operators: sql`vector_cosine_ops`, scoreOf: (distance: number) => 1 - distance },
  euclidean: { operator: sql`<->`, operators: sql`vector_l2_ops`, scoreOf: (distance: number) => distance },
  'dot-product': { operator: sql`<#>`, operators: sql`vector_ip_ops`, scoreOf: (distance: number) => -distance },
} as const satisfies Record<VectorMetric, unknown>

const comparisons = {
  '<': sql`<`,
  '<=': sql`<=`,
  '>': sql`>`,
  '>=': sql`>=`,
} as const

export interface Pgvector {
  /** Whether the extension is available; creates it if only that is missing. Checked once. */
  find(): Promise<boolean>
  /** Creates the database indexes that searches need. */
  prepareIndex(index: StoredIndex): Promise<void>
  /** Drops the database indexes, which cost writes and are unused. */
  removeIndex(index: StoredIndex): Promise<void>
  openSearcher(index: StoredIndex): Searcher
}

/** The vector of a row, cast to the type of the extension. */
const vectorOf = ({ definition: { dimensions } }: StoredIndex): SqlText => sql`(floats::${typeOf(dimensions)})`

const typeOf = (dimensions: number): SqlText => ({ text: `vector(${dimensions})`, values: [] })

const isNewEnough = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > versionMin[0] || (major === versionMin[0] && minor >= versionMin[1])
}

/** `builtAtStartMax`: see `pgvectorBuiltAtStartMax`. */
export function createPgvector(
  database: Database,
  rows: VectorRows,
  log: Log,
  builtAtStartMax: number = pgvectorBuiltAtStartMax,
): Pgvector {
  const { dialect } = database
  let found: Promise<boolean> | null = null

  async function detect(): Promise<boolean> {
    if (!dialect.findExtension) return false
    const [extension] = await database.all<{ available: string; installed: string | null }>(
      dialect.findExtension('vector'),
    )
    if (!extension) return false
    const { available, installed } = extension
    if (!isNewEnough(installed ?? available)) {
      log.warn('pgvector.outdated', { version: installed ?? available, least: '0.8.0' })
      return false
    }
    if (installed === null && !(await create())) return false
    const [type] = await database.all<{ found: boolean }>(sql`SELECT to_regtype('vector') IS NOT NULL AS found`)
    if (!type?.found) log.warn('pgvector.schema_not_in_search_path', {})
    return type?.found === true
  }

  async function create(): Promise<boolean> {
    try {
      await database.write(
        async (tx) => {
          await tx.lock('extension vector')
          await tx.run(sql`CREATE EXTENSION IF NOT EXISTS vector`)
        },
        { isMigration: true },
      )
      return true
    } catch (error) {
      if (error instanceof EngineError) throw error
      log.warn('pgvector.creation_denied', { error })
      return false
    }
  }

  /** The database indexes of a vector index: name and the definition after `CREATE INDEX … ON`. */
  function indexesOf(index: StoredIndex): readonly (readonly [name: string, definition: SqlText])[] {
    const { vectors, prefix, definition } = index
    const { operators } = metrics[definition.metric]
    return [
      [`${prefix}_nearest`, sql`${vectors} USING hnsw (${vectorOf(index)} ${operators})`],
      [`${prefix}_namespace`, sql`${vectors} (namespace) WHERE id IS NOT NULL`],
      // Indexes hashes of members, since other index types reject long texts.
      [`${prefix}_metadata`, sql`${vectors} USING gin ((metadata::jsonb) jsonb_path_ops)`],
    ]
  }

  async function exists(index: StoredIndex, name: string): Promise<boolean> {
    const { text } = dialect.indexName(index.table, name)
    const [row] = await database.all<{ found: boolean }>(sql`SELECT to_regclass(${text}::text) IS NOT NULL AS found`)
    return row?.found === true
  }

  return {
    find() {
      found ??= detect().catch((error) => {
        found = null
        throw error
      })
      return found
    },

    async prepareIndex(index) {
      const missing: (readonly [string, SqlText])[] = []
      for (const one of indexesOf(index)) if (!(await exists(index, one[0]))) missing.push(one)
      if (missing.length === 0) return
      const { size } = await rows.state(index)
      if (size > builtAtStartMax) {
        const statements = missing.map(([name, { text }]) => `CREATE INDEX CONCURRENTLY "${name}" ON ${text}`)
        log.warn('pgvector.indexes_missing', { statements, vectors: size })
        return
      }
      await database.write(
        async (tx) => {
          await tx.lock('vector indexes')
          for (const [name, definition] of missing)
            await tx.run(sql`CREATE INDEX IF NOT EXISTS ${ident(name)} ON ${definition}`)
        },
        { isMigration: true },
      )
    },

    async removeIndex(index) {
      if (!dialect.findExtension) return
      await database.write(
        async (tx) => {
          for (const [name] of indexesOf(index))
            await tx.run(sql`DROP INDEX IF EXISTS ${dialect.indexName(index.table, name)}`)
        },
        { isMigration: true },
      )
    },

    openSearcher: (index) => createSearcher(database, rows, index),
  }
}

function createSearcher(database: Database, rows: VectorRows, index: StoredIndex): Searcher {
  const { vectors } = index
  const { dimensions, metric } = index.definition
  const { operator, scoreOf } = metrics[metric]
  const conditionOf = createConditions(database)

  const whereOf = ({ namespace, conditions }: Search): SqlText => {
    const where = [sql`id IS NOT NULL`, ...conditions.map(conditionOf)]
    if (namespace !== null) where.push(sql`namespace = ${namespace}`)
    return join(where, ' AND ')
  }

  /** Sorts candidates exactly: the index returns them in approximate order. */
  function statementOf(search: Search, candidates: number): SqlText {
    const { vector, topK, wanted } = search
    const target = sql`${`[${vector.join(',')}]`}::text::${typeOf(dimensions)}`
    const distance = sql`${vectorOf(index)} ${operator} ${target}`
    return sql`WITH near AS MATERIALIZED (SELECT ${rows.columns(wanted)}, ${distance} AS distance FROM ${vectors}
        WHERE ${whereOf(search)} ORDER BY ${distance} LIMIT ${candidates})
      SELECT * FROM near ORDER BY distance, key LIMIT ${topK}`
  }

  /** Whether few enough vectors satisfy the conditions to compare all of them. */
  async function areFew(tx: Transaction, search: Search): Promise<boolean> {
    if (search.namespace === null && search.conditions.length === 0) return false
    const some = sql`SELECT 1 FROM ${vectors} WHERE ${whereOf(search)} LIMIT ${pgvectorComparedMax + 1}`
    const [counted] = await tx.all<{ count: unknown }>(sql`SELECT count(*) AS count FROM (${some}) AS accepted`)
    return Number(counted?.count) <= pgvectorComparedMax
  }

  return {
    search(search) {
      const { topK } = search
      const candidates = Math.max(pgvectorCandidatesMin, 2 * topK)
      return database.write(async (tx) => {
        const set = (name: string, value: string): void => tx.send(sql`SELECT set_config(${name}, ${value}, true)`)
        const find = async (): Promise<Match[]> => {
          const found = await tx.all<Found>(statementOf(search, candidates))
          return found.map((row) => ({ ...rows.toVector(row), score: scoreOf(row.distance) }))
        }
        // The best plan depends on the searched values.
        set('plan_cache_mode', 'force_custom_plan')
        if (!(await areFew(tx, search))) {
          set('hnsw.ef_search', String(candidates))
          set('hnsw.iterative_scan', 'relaxed_order')
          const found = await find()
          // The index scan may stop before it has found enough rows.
          if (found.length === topK) return found
        }
        set('enable_indexscan', 'off')
        return find()
      })
    },
    notice() {},
    close() {},
  }
}

interface Found extends VectorRow {
  readonly distance: number
}

/** Translates conditions to SQL over the stored metadata. */
function createConditions({ dialect }: Database): (condition: VectorCondition) => SqlText {
  const metadata = sql`metadata`
  const types = ['string', 'number', 'boolean'] as const
  const isTrue = (condition: SqlText): SqlText => sql`coalesce(${condition}, FALSE)`
  const isMissing = (field: string): SqlText =>
    join(
      types.map((type) => sql`${dialect.memberAs(metadata, field, type)} IS NULL`),
      ' AND ',
    )

  function compare(field: string, operator: SqlText, value: VectorMetadataValue): SqlText {
    if (value === null) return sql`FALSE`
    return isTrue(
      sql`${dialect.memberAs(metadata, field, typeof value as (typeof types)[number])} ${operator} ${value}`,
    )
  }

  /** In the form that the metadata index supports. NULL for vectors without metadata. */
  function isEqual(field: string, value: VectorMetadataValue): SqlText {
    if (value === null) return sql`(${isMissing(field)})`
    return sql`metadata::jsonb @> ${JSON.stringify({ [field]: value })}::text::jsonb`
  }

  function isAmong(field: string, values: readonly VectorMetadataValue[]): SqlText {
    const found = types.flatMap((type) => {
      const ofType = values.filter((value) => typeof value === type) as (string | number | boolean)[]
      if (ofType.length === 0) return []
      const stored = type === 'string' ? 'text' : type
      return [isTrue(dialect.inList(dialect.memberAs(metadata, field, type), ofType, stored))]
    })
    if (values.includes(null)) found.push(sql`(${isMissing(field)})`)
    return found.length === 0 ? sql`FALSE` : join(found, ' OR ')
  }

  return (condition) => {
    const { field, operator } = condition
    switch (operator) {
      case '=':
        return isEqual(field, condition.value)
      case '!=':
        return sql`NOT ${isTrue(isEqual(field, condition.value))}`
      case 'in':
        return condition.values.length === 0 || condition.values.length > shortListMax
          ? sql`(${isAmong(field, condition.values)})`
          : sql`(${join(
              condition.values.map((value) => isEqual(field, value)),
              ' OR ',
            )})`
      case 'not in':
        return sql`NOT (${isAmong(field, condition.values)})`
      default:
        return compare(field, comparisons[operator], condition.value)
    }
  }
}

/** Longest list whose values are looked up in the index one by one. */
const shortListMax = 16
