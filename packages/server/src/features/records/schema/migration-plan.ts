/**
 * The difference between the tables a database has and those the configuration declares, as steps that lose nothing and
 * refusals that would. Pure but for the questions a plan asks of existing rows.
 */
import { fingerprint } from '../../../base/crypto/hash.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { Field, FieldType, Table } from '../../../query/table.ts'
import { extraColumn, storedTypes, toStored } from '../../../query/to-sql.ts'

/** What is remembered of a table as it was last made. */
export interface TableDescription {
  readonly schemaless: boolean
  readonly fields: Readonly<Record<string, FieldType>>
  readonly required: readonly string[]
  /** Index name to its columns. */
  readonly indexes: Readonly<Record<string, string>>
  readonly search: readonly string[]
}

export interface Refusal {
  /** Where in the configuration, and what to do about it. */
  readonly message: string
  /** What `plinth migrate --apply` runs to accept the loss; absent where only the application can decide. */
  readonly accept?: readonly SqlText[]
}

/** A statement, and the fields of the index it makes, if it makes one. */
export interface PlanStep extends SqlText {
  readonly indexed?: readonly string[]
}

export interface TablePlan {
  readonly steps: readonly PlanStep[]
  readonly refusals: readonly Refusal[]
  readonly description: TableDescription
}

interface PlannedIndex {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
}

const indexName = (table: Table, fields: readonly string[], unique: boolean): string =>
  `_${unique ? 'uq' : 'ix'}_${table.name.slice(0, 24)}_${fingerprint([table.name, ...fields].join('\n'))}`

/** Declared indexes, one per unique field, one per reference (looked up when the referenced record is deleted). */
function indexesOf(table: Table): PlannedIndex[] {
  const wanted = new Map<string, PlannedIndex>()
  const add = (fields: readonly string[], unique: boolean): void => {
    const name = indexName(table, fields, unique)
    wanted.set(name, { name, fields, unique })
  }
  for (const { fields, unique } of table.indexes) add(fields, unique)
  for (const field of table.fields.values()) {
    if (field.name === 'id') continue
    if (field.unique) add([field.name], true)
    else if (field.references !== undefined && ![...wanted.values()].some(({ fields }) => fields[0] === field.name))
      add([field.name], false)
  }
  return [...wanted.values()]
}

function createIndex(table: Table, { name, fields, unique }: PlannedIndex, dialect: Dialect): PlanStep {
  // Every order ends with the id: with it in the index, a deep page of equal values is a seek and not a sort.
  const columns = unique || fields.includes('id') ? fields : [...fields, 'id']
  const terms = columns.map((column) => (column === 'id' ? ident(column) : dialect.indexColumn(ident(column))))
  const own = dialect.own(table)
  const kind = unique ? sql`UNIQUE INDEX` : sql`INDEX`
  const over = join(own ? [own.column, ...terms] : terms, ', ')
  return { ...sql`CREATE ${kind} ${ident(name)} ON ${dialect.target(table)} (${over})`, indexed: fields }
}

export function describe(table: Table): TableDescription {
  const fields = [...table.fields.values()]
  return {
    schemaless: table.schemaless,
    fields: Object.fromEntries(fields.map(({ name, type }) => [name, type])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    indexes: Object.fromEntries(indexesOf(table).map(({ name, fields: columns }) => [name, columns.join(',')])),
    search: table.search,
  }
}

const columnOf = (field: Field, dialect: Dialect): SqlText => {
  const type: SqlText = { text: dialect.columnTypes[storedTypes[field.type]], values: [] }
  const isGenerated = field.name === 'createdAt' || field.name === 'updatedAt'
  return isGenerated ? sql`${ident(field.name)} ${type} NOT NULL` : sql`${ident(field.name)} ${type}`
}

/** A table made anew. */
export function createPlan(table: Table, dialect: Dialect): TablePlan {
  const columns = [...dialect.tableHead(table)]
  for (const field of table.fields.values()) if (field.name !== 'id') columns.push(columnOf(field, dialect))
  const json: SqlText = { text: dialect.columnTypes.json, values: [] }
  if (table.schemaless) columns.push(sql`${extraColumn} ${json} NOT NULL`)
  const steps = [sql`CREATE TABLE ${dialect.target(table)} (${join(columns, ', ')})`]
  for (const index of indexesOf(table)) steps.push(createIndex(table, index, dialect))
  if (table.search.length > 0) steps.push(...dialect.createSearch(table, table.search))
  return { steps, refusals: [], description: describe(table) }
}

const isSameStorage = (a: FieldType, b: FieldType): boolean =>
  a === b || (['string', 'text'].includes(a) && ['string', 'text'].includes(b))

/** Whose rows a plan asks about. */
interface Asking {
  readonly reader: Reader
  readonly table: Table
  readonly dialect: Dialect
}

async function hasRows({ reader, table, dialect }: Asking, condition: SqlText): Promise<boolean> {
  const found = await reader.all(sql`SELECT 1 FROM ${dialect.target(table)} WHERE ${condition} LIMIT 1`)
  return found.length > 0
}

/** What one planned difference adds to the plan. */
interface Draft {
  readonly table: Table
  /**
   * Null where the rows cannot be asked: a dynamic namespace as a whole, whose instances are asked when they are
   * opened.
   */
  readonly reader: Reader | null
  readonly dialect: Dialect
  readonly steps: PlanStep[]
  readonly refusals: Refusal[]
}

const at = ({ table }: Draft, name: string): string =>
  `databases.${table.namespace}.tables.${table.name}.schema.${name}`

function planRemovedFields(draft: Draft, known: TableDescription): void {
  for (const name of Object.keys(known.fields)) {
    if (draft.table.fields.has(name)) continue
    draft.refusals.push({
      message: `${at(draft, name)}: the field was removed, but its column still holds data. Put it back, or run \`plinth migrate --apply\` to drop the column and what it holds.`,
      accept: [sql`ALTER TABLE ${draft.dialect.target(draft.table)} DROP COLUMN ${ident(name)}`],
    })
  }
}

/** Whether records that have no value of the field get its default. */
function isFilled({ name, type, required, default: value }: Field, known: TableDescription): boolean {
  const before = known.fields[name]
  if (value === undefined || before === undefined) return value !== undefined
  return required && !known.required.includes(name) && isSameStorage(before, type)
}

async function planField(draft: Draft, field: Field, known: TableDescription): Promise<void> {
  const { table, reader, dialect, steps, refusals } = draft
  const column = ident(field.name)
  const knownType = known.fields[field.name]
  const isNew = knownType === undefined
  if (!isNew && !isSameStorage(knownType, field.type)) {
    refusals.push({
      message: `${at(draft, field.name)}: the type was "${knownType}" and is now "${field.type}". Put it back, or declare a new field, copy the values over, and remove this one.`,
    })
    return
  }
  if (isNew) steps.push(sql`ALTER TABLE ${dialect.target(table)} ADD COLUMN ${columnOf(field, dialect)}`)
  if (isFilled(field, known)) {
    const value = toStored(field, field.default, dialect)
    steps.push(sql`UPDATE ${dialect.target(table)} SET ${column} = ${value} WHERE ${column} IS NULL`)
    return
  }
  if (!field.required || known.required.includes(field.name)) return
  if (!reader || (await hasRows({ reader, table, dialect }, isNew ? sql`TRUE` : sql`${column} IS NULL`)))
    refusals.push({
      message: `${at(draft, field.name)}: the field is now required, but there are records without a value. Give it a default, or fill the records before you require it.`,
    })
}

const notUnique = (table: Table, fields: readonly string[], reason: string): Refusal => ({
  message: `databases.${table.namespace}.tables.${table.name}: ${fields.join(', ')} should be unique, but several records ${reason}`,
})

const shared = (table: Table, fields: readonly string[]): Refusal =>
  notUnique(table, fields, 'share a value. Change them first.')

const sharedDefault = (table: Table, fields: readonly string[]): Refusal =>
  notUnique(table, fields, 'would get the same default. Declare it without one first, and give each record a value.')

/** What stands in the way of an index that the engine would not make over the rows there are. */
export const refusalOf = (table: Table, fields: readonly string[], kind: 'unique' | 'oversized'): Refusal =>
  kind === 'unique'
    ? shared(table, fields)
    : {
        message: `databases.${table.namespace}.tables.${table.name}: ${fields.join(', ')} should be indexed, but there are records whose text is too long for it. Shorten them first.`,
      }

async function planIndexes(draft: Draft, known: TableDescription): Promise<void> {
  const { table, reader, dialect, steps, refusals } = draft
  const wanted = indexesOf(table)
  for (const name of Object.keys(known.indexes))
    if (!wanted.some((index) => index.name === name))
      steps.unshift(sql`DROP INDEX IF EXISTS ${dialect.indexName(table, name)}`)
  for (const index of wanted) {
    if (Object.hasOwn(known.indexes, index.name)) continue
    if (index.unique && reader && (await hasDuplicates({ reader, table, dialect }, index.fields, known))) {
      const fills = index.fields.some((name) => isFilled(table.fields.get(name) as Field, known))
      refusals.push(fills ? sharedDefault(table, index.fields) : shared(table, index.fields))
    } else steps.push(createIndex(table, index, dialect))
  }
}

/** Whether several records share the values of these fields, with the defaults that the plan is about to fill in. */
async function hasDuplicates(
  { reader, table, dialect }: Asking,
  names: readonly string[],
  known: TableDescription,
): Promise<boolean> {
  const own = dialect.own(table)
  const grouped: SqlText[] = own ? [own.column] : []
  const present = [sql`1 = 1`]
  for (const field of names.map((name) => table.fields.get(name) as Field)) {
    const isThere = Object.hasOwn(known.fields, field.name)
    if (isFilled(field, known)) {
      // All records of a column that does not exist yet have the default: it tells none apart.
      if (isThere) grouped.push(sql`coalesce(${ident(field.name)}, ${toStored(field, field.default, dialect)})`)
    } else if (isThere) {
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

/** A table that exists, brought to its declaration. Without a reader only the declarations are compared. */
export async function extendPlan(
  table: Table,
  known: TableDescription,
  reader: Reader | null,
  dialect: Dialect,
): Promise<TablePlan> {
  const draft: Draft = { table, reader, dialect, steps: [], refusals: [] }
  const description = describe(table)
  if (known.schemaless !== table.schemaless) {
    const was = known.schemaless ? 'without' : 'with'
    draft.refusals.push({
      message: `databases.${table.namespace}.tables.${table.name}: the table was made ${was} a schema. Put that back, or declare a new table and copy the records over.`,
    })
    return { ...draft, description }
  }
  planRemovedFields(draft, known)
  for (const field of table.fields.values()) await planField(draft, field, known)
  await planIndexes(draft, known)
  if (known.search.join() !== table.search.join()) {
    // The old triggers go first: they name columns that may be about to change.
    draft.steps.unshift(...dialect.dropSearch(table))
    if (table.search.length > 0) draft.steps.push(...dialect.createSearch(table, table.search))
  }
  return { ...draft, description }
}
