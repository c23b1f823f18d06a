/**
 * Plans a migration: compares the tables of a database with the declared ones. Differences become steps that lose no
 * data, or conflicts for those that would. Reads existing rows, and changes nothing.
 */
import { fingerprint } from '../../../base/crypto/hash.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { termsColumn, termsColumnName } from '../../../engines/term-index/term-index.ts'
import { cellColumn } from '../../../query/geo/geo-sql.ts'
import type { Field, FieldType, Ranking, Table } from '../../../query/table.ts'
import { extraColumn, storedColumns, storedValues, toStored } from '../../../query/to-sql.ts'
import { migratedVersions, versionColumn, versionDefinition, versionName } from '../version.ts'
import { type CoveredFields, type CoveringIndex, canStay, coveredBy, describeCovered } from './covered-fields.ts'
import { type ComputedDescription, describeComputed, findStale, type StaleFields } from './stale-fields.ts'

/** The stored description of a table as last migrated. */
export interface TableDescription extends ComputedDescription {
  readonly schemaless: boolean
  readonly fields: Readonly<Record<string, FieldType>>
  readonly required: readonly string[]
  /** Index name to its columns. */
  readonly indexes: Readonly<Record<string, string>>
  /** Absent in descriptions of earlier releases, and where no index covers a field. */
  readonly covered?: CoveredFields
  /** Fields of the full-text index of the engine. */
  readonly search: readonly string[]
  /** The index of terms: its fields with their weights; absent without one. */
  readonly ranked?: string
  /** Whether rows have versions; absent in descriptions of earlier releases. */
  readonly versioned?: true
}

export interface SchemaConflict {
  /** The path in the configuration, and what to do. */
  readonly message: string
  /** Statements that `plinth migrate --apply` runs to accept the data loss; absent if it cannot be accepted. */
  readonly accept?: readonly SqlText[]
}

/** A statement, and the index that it creates, if any. */
export interface PlanStep extends SqlText {
  readonly indexed?: Pick<CoveringIndex, 'fields' | 'unique'>
}

export interface TablePlan {
  readonly steps: readonly PlanStep[]
  readonly conflicts: readonly SchemaConflict[]
  readonly description: TableDescription
  /** Whether what searches find has to be stored again for existing rows. */
  readonly fillsSearch: boolean
}

const indexName = (table: Table, fields: readonly string[], unique: boolean): string =>
  `_${unique ? 'uq' : 'ix'}_${table.name.slice(0, 24)}_${fingerprint([table.name, ...fields].join('\n'))}`

/** Matches the names of `indexName`. */
const indexNamePattern = /^_(?:ix|uq)_/

/** Declared indexes, one per unique field, and one per reference (used when the referenced record is deleted). */
export function indexesOf(table: Table): CoveringIndex[] {
  const wanted = new Map<string, CoveringIndex>()
  const add = (fields: readonly string[], unique: boolean): void => {
    const name = indexName(table, fields, unique)
    wanted.set(name, { name, fields, unique })
  }
  for (const { fields, unique } of table.indexes) add(fields, unique)
  for (const { name, index } of table.fields.values())
    if (index) {
      const column = cellColumn(name)
      const named = indexName(table, [column], false)
      wanted.set(named, { name: named, fields: [name], unique: false, column })
    }
  for (const field of table.fields.values()) {
    if (field.name === 'id') continue
    if (field.unique) add([field.name], true)
    else if (field.references !== undefined && ![...wanted.values()].some(({ fields }) => fields[0] === field.name))
      add([field.name], false)
  }
  return [...wanted.values()]
}

function createIndex(table: Table, index: CoveringIndex, dialect: Dialect): PlanStep {
  const { name, fields, unique, column: only } = index
  // Every sort ends with the id: including it makes a deep page of equal values an index seek instead of a sort.
  const columns = only ? [only] : unique || fields.includes('id') ? fields : [...fields, 'id']
  const terms = columns.map((column) =>
    column === 'id' || column === only ? ident(column) : dialect.indexColumn(ident(column)),
  )
  terms.push(...coveredBy(table, index, dialect).map(ident))
  const own = dialect.own(table)
  const kind = unique ? sql`UNIQUE INDEX` : sql`INDEX`
  const over = join(own ? [own.column, ...terms] : terms, ', ')
  return { ...sql`CREATE ${kind} IF NOT EXISTS ${ident(name)} ON ${dialect.target(table)} (${over})`, indexed: index }
}

/** What the index of terms depends on; the other options are those of the searches. */
const describeRanking = ({ search }: Table, { weights, substring, typos }: Ranking): string =>
  JSON.stringify({
    fields: search.map((name, at) => [name, weights[at]]),
    parts: substring,
    ...(typos ? { dictionary: true } : {}),
  })

export function describe(table: Table): TableDescription {
  const fields = [...table.fields.values()]
  return {
    schemaless: table.schemaless,
    fields: Object.fromEntries(fields.map(({ name, type }) => [name, type])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    indexes: Object.fromEntries(indexesOf(table).map(({ name, fields: columns }) => [name, columns.join(',')])),
    search: table.ranking ? [] : table.search,
    ...(table.ranking ? { ranked: describeRanking(table, table.ranking) } : {}),
    versioned: true,
    ...describeComputed(table),
  }
}

/** The definitions of a field's columns. */
const columnsOf = (field: Field, dialect: Dialect): readonly SqlText[] =>
  storedColumns(field).map(({ name, type: stored }) => {
    const type: SqlText = { text: dialect.columnTypes[stored], values: [] }
    const isGenerated = name === 'createdAt' || name === 'updatedAt'
    return isGenerated ? sql`${ident(name)} ${type} NOT NULL` : sql`${ident(name)} ${type}`
  })

/** The plan that creates a table. */
export function createPlan(table: Table, dialect: Dialect): TablePlan {
  const columns = [...dialect.tableHead(table), versionDefinition]
  for (const field of table.fields.values()) if (field.name !== 'id') columns.push(...columnsOf(field, dialect))
  const json: SqlText = { text: dialect.columnTypes.json, values: [] }
  if (table.schemaless) columns.push(sql`${extraColumn} ${json} NOT NULL`)
  if (table.ranking) columns.push(termsDefinition(dialect))
  const steps = [sql`CREATE TABLE ${dialect.target(table)} (${join(columns, ', ')})`]
  const indexes = indexesOf(table)
  for (const index of indexes) steps.push(createIndex(table, index, dialect))
  steps.push(...createSearch(table, dialect))
  const description = { ...describe(table), ...describeCovered(table, indexes, dialect) }
  return { steps, conflicts: [], description, fillsSearch: false }
}

/** The statements that create the index of searches; the column of terms is part of the table. */
function createSearch(table: Table, dialect: Dialect): readonly SqlText[] {
  if (table.ranking) return dialect.termIndex.create(table, table.ranking)
  return table.search.length > 0 ? dialect.createSearch(table, table.search) : []
}

const termsDefinition = (dialect: Dialect): SqlText => {
  const type: SqlText = { text: dialect.columnTypes.json, values: [] }
  return sql`${termsColumn} ${type}`
}

/** Replaces the index of searches. Returns whether it did. */
async function planSearch({ table, reader, dialect, steps }: Draft, known: TableDescription): Promise<boolean> {
  const wanted = describe(table)
  if (known.search.join() === wanted.search.join() && known.ranked === wanted.ranked) return false
  // Drop the old triggers first: they refer to columns that may change. An earlier release that has run since knows
  // nothing of the index of terms.
  steps.unshift(...dialect.dropSearch(table), ...dialect.termIndex.drop(table))
  const hasTerms = reader !== null && (await reader.all(dialect.hasColumn(table, termsColumnName))).length > 0
  if (table.ranking && !hasTerms)
    steps.push(sql`ALTER TABLE ${dialect.target(table)} ADD COLUMN ${termsDefinition(dialect)}`)
  if (!table.ranking && hasTerms) steps.push(sql`ALTER TABLE ${dialect.target(table)} DROP COLUMN ${termsColumn}`)
  steps.push(...createSearch(table, dialect))
  return true
}

const isSameStorage = (a: FieldType, b: FieldType): boolean =>
  a === b || (['string', 'text'].includes(a) && ['string', 'text'].includes(b))

/** The rows that a plan reads. */
interface RowSource {
  readonly reader: Reader
  readonly table: Table
  readonly dialect: Dialect
}

async function hasRows({ reader, table, dialect }: RowSource, condition: SqlText): Promise<boolean> {
  const found = await reader.all(sql`SELECT 1 FROM ${dialect.target(table)} WHERE ${condition} LIMIT 1`)
  return found.length > 0
}

/** A plan under construction. */
interface Draft {
  readonly table: Table
  /** Null for a dynamic namespace, whose instances are checked when they are opened. */
  readonly reader: Reader | null
  readonly dialect: Dialect
  readonly steps: PlanStep[]
  readonly conflicts: SchemaConflict[]
  readonly stale: StaleFields | null
}

const at = ({ table }: Draft, name: string): string =>
  `databases.${table.namespace}.tables.${table.name}.schema.${name}`

const isComputed = ({ computed }: TableDescription, name: string): boolean =>
  computed !== undefined && Object.hasOwn(computed, name)

function planRemovedFields(draft: Draft, known: TableDescription): void {
  const { dialect, table } = draft
  for (const [name, type] of Object.entries(known.fields)) {
    if (table.fields.has(name)) continue
    const columns = storedColumns({ name, type, required: false, unique: false })
    const drops = columns.map((column) => sql`ALTER TABLE ${dialect.target(table)} DROP COLUMN ${ident(column.name)}`)
    // Its values follow from other fields.
    if (isComputed(known, name)) {
      draft.steps.push(...drops)
      continue
    }
    draft.conflicts.push({
      message: `${at(draft, name)}: the field was removed, but its column still has data. Restore the field, or run \`plinth migrate --apply\` to drop the column with its data.`,
      accept: drops,
    })
  }
}

/** A table of an earlier release gets the column, unless an earlier release has run again since it was added. */
async function planVersions({ table, reader, dialect, steps }: Draft, known: TableDescription): Promise<void> {
  if (known.versioned || !reader) return
  const found = await reader.all(dialect.hasColumn(table, versionName))
  if (found.length === 0) steps.push(sql`ALTER TABLE ${dialect.target(table)} ADD COLUMN ${versionDefinition}`)
}

/** Whether existing records without a value get the field's default. */
function isFilled({ name, type, required, default: value }: Field, known: TableDescription): boolean {
  const before = known.fields[name]
  if (value === undefined || before === undefined) return value !== undefined
  return required && !known.required.includes(name) && isSameStorage(before, type)
}

async function planField(draft: Draft, field: Field, known: TableDescription): Promise<void> {
  const { table, reader, dialect, steps, conflicts } = draft
  const column = ident(field.name)
  const knownType = known.fields[field.name]
  const isNew = knownType === undefined
  if (field.readOnly && !isNew) {
    await planComputedField(draft, field, known)
    return
  }
  if (!isNew && !isSameStorage(knownType, field.type)) {
    conflicts.push({
      message: `${at(draft, field.name)}: the type was "${knownType}" and is now "${field.type}". Restore the type, or declare a new field, copy the values, and remove this field.`,
    })
    return
  }
  if (isNew)
    for (const definition of columnsOf(field, dialect))
      steps.push(sql`ALTER TABLE ${dialect.target(table)} ADD COLUMN ${definition}`)
  if (isFilled(field, known)) {
    const values = storedValues([field], { [field.name]: field.default }, dialect)
    const sets = storedColumns(field).map(({ name }, at) => sql`${ident(name)} = ${values[at] ?? null}`)
    const next = sql`${versionColumn} = ${versionColumn} + ${migratedVersions}`
    steps.push(sql`UPDATE ${dialect.target(table)} SET ${join([...sets, next], ', ')} WHERE ${column} IS NULL`)
    return
  }
  if (!field.required || known.required.includes(field.name)) return
  if (!reader || (await hasRows({ reader, table, dialect }, isNew ? sql`TRUE` : sql`${column} IS NULL`)))
    conflicts.push({
      message: `${at(draft, field.name)}: the field is now required, but some records have no value. Add a default, or set the value in all records first.`,
    })
}

/** A field of the table that is computed from now on, or was before. */
async function planComputedField(draft: Draft, field: Field, known: TableDescription): Promise<void> {
  const { table, reader, dialect, steps, conflicts } = draft
  const column = ident(field.name)
  const wasComputed = isComputed(known, field.name)
  if (!wasComputed && (!reader || (await hasRows({ reader, table, dialect }, sql`${column} IS NOT NULL`))))
    conflicts.push({
      message: `${at(draft, field.name)}: the field is now computed, which replaces its values. Declare the computed field under another name, or run \`plinth migrate --apply\` to replace them.`,
      accept: [],
    })
  const type = known.fields[field.name] as FieldType
  if (isSameStorage(type, field.type)) return
  const alter = sql`ALTER TABLE ${dialect.target(table)}`
  for (const { name } of storedColumns({ ...field, type })) steps.push(sql`${alter} DROP COLUMN ${ident(name)}`)
  for (const definition of columnsOf(field, dialect)) steps.push(sql`${alter} ADD COLUMN ${definition}`)
}

const notUnique = (table: Table, fields: readonly string[], reason: string): SchemaConflict => ({
  message: `databases.${table.namespace}.tables.${table.name}: ${fields.join(', ')} must be unique, but several records ${reason}`,
})

const shared = (table: Table, fields: readonly string[]): SchemaConflict =>
  notUnique(table, fields, 'have the same value. Change them first.')

const sharedDefault = (table: Table, fields: readonly string[]): SchemaConflict =>
  notUnique(
    table,
    fields,
    'would get the same default. Declare the field without a default first, and set a value in each record.',
  )

/** The conflict for an index that the engine cannot create over the existing rows. */
export const conflictOf = (table: Table, fields: readonly string[], kind: 'unique' | 'oversized'): SchemaConflict =>
  kind === 'unique'
    ? shared(table, fields)
    : {
        message: `databases.${table.namespace}.tables.${table.name}: ${fields.join(', ')} cannot be indexed: some records have texts that are too long. Shorten them first.`,
      }

/**
 * The indexes that a table can have: those of stale fields are created once all rows have their new values, which may
 * be those that other rows have until then.
 */
const indexesOver = (table: Table, stale: StaleFields | null): CoveringIndex[] =>
  indexesOf(table).filter(({ fields }) => !fields.some((name) => stale?.names.includes(name)))

async function planIndexes(draft: Draft, known: TableDescription): Promise<void> {
  const { table, reader, dialect, steps, conflicts, stale } = draft
  const wanted = indexesOver(table, stale)
  for (const name of Object.keys(known.indexes))
    if (!canStay(table, known, name) || !wanted.some((index) => index.name === name))
      steps.unshift(sql`DROP INDEX IF EXISTS ${dialect.indexName(table, name)}`)
  for (const index of wanted) {
    if (canStay(table, known, index.name)) continue
    if (index.unique && reader && (await hasDuplicates({ reader, table, dialect }, index.fields, known))) {
      const fills = index.fields.some((name) => isFilled(table.fields.get(name) as Field, known))
      conflicts.push(fills ? sharedDefault(table, index.fields) : shared(table, index.fields))
    } else steps.push(createIndex(table, index, dialect))
  }
}

/** Drops the indexes of a table that no migration has recorded. */
export async function planStrays(
  table: Table,
  known: TableDescription,
  reader: Reader,
  dialect: Dialect,
): Promise<SqlText[]> {
  const found = await reader.all<{ name: string }>(dialect.indexNames(table))
  const strays = found.filter(({ name }) => indexNamePattern.test(name) && !Object.hasOwn(known.indexes, name))
  return strays.map(({ name }) => sql`DROP INDEX IF EXISTS ${dialect.indexName(table, name)}`)
}

/** Whether several records have the same values of these fields, including defaults that the plan fills in. */
async function hasDuplicates(
  { reader, table, dialect }: RowSource,
  names: readonly string[],
  known: TableDescription,
): Promise<boolean> {
  const own = dialect.own(table)
  const grouped: SqlText[] = own ? [own.column] : []
  const present = [sql`1 = 1`]
  for (const field of names.map((name) => table.fields.get(name) as Field)) {
    const isStored = Object.hasOwn(known.fields, field.name)
    if (isFilled(field, known)) {
      // In a column that does not exist yet all records have the default, so it does not affect grouping.
      if (isStored) grouped.push(sql`coalesce(${ident(field.name)}, ${toStored(field, field.default, dialect)})`)
    } else if (isStored) {
      grouped.push(ident(field.name))
      present.push(sql`${ident(field.name)} IS NOT NULL`)
    } else return false
  }
  const by = grouped.length > 0 ? sql` GROUP BY ${join(grouped, ', ')}` : sql``
  const found = await reader.all(
    sql`SELECT count(*) AS n FROM ${dialect.target(table)} WHERE ${join(present, ' AND ')}${by} HAVING count(*) > 1 LIMIT 1`,
  )
  return found.length > 0
}

/** The plan that migrates an existing table. Without a reader only the declarations are compared. */
export async function extendPlan(
  table: Table,
  known: TableDescription,
  reader: Reader | null,
  dialect: Dialect,
): Promise<TablePlan> {
  const stale = findStale(table, known, (name) => {
    const field = table.fields.get(name)
    return field !== undefined && isFilled(field, known)
  })
  const draft: Draft = { table, reader, dialect, steps: [], conflicts: [], stale }
  const wanted = indexesOver(table, stale)
  const indexes = Object.fromEntries(wanted.map(({ name, fields }) => [name, fields.join(',')]))
  const covered = describeCovered(table, wanted, dialect, known)
  const description = { ...describe(table), ...covered, ...(stale ? { indexes, stale } : {}) }
  if (known.schemaless !== table.schemaless) {
    const was = known.schemaless ? 'without' : 'with'
    draft.conflicts.push({
      message: `databases.${table.namespace}.tables.${table.name}: the table was created ${was} a schema. Restore that, or declare a new table and copy the records.`,
    })
    return { ...draft, description, fillsSearch: false }
  }
  await planVersions(draft, known)
  planRemovedFields(draft, known)
  for (const field of table.fields.values()) await planField(draft, field, known)
  await planIndexes(draft, known)
  const isReplaced = await planSearch(draft, known)
  const isSearched = [...table.fields.values()].some(
    (field) => table.search.includes(field.name) && isFilled(field, known),
  )
  return { ...draft, description, fillsSearch: isReplaced || isSearched }
}
