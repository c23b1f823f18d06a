/**
 * Tables of a namespace: queries, changes, batches and transactions. `Row` is what a query answers; `Table` is the
 * declaration of the table, from which names, operators and values are checked.
 */
import type { AggregateOptions, GroupedQuery, GroupKey, Groups, Measures } from './aggregates.ts'
import type { TableDeclaration, TableName, TablesOf, Untyped } from './config-shape.ts'
import type { LiveList, LiveRecord } from './live.ts'
import type { Call } from './options.ts'
import type {
  IncludeOf,
  OnlyRelations,
  RelationCondition,
  RelationPath,
  TableScope,
  WithIncluded,
} from './relations.ts'
import type {
  Condition,
  FieldName,
  Insert,
  Measured,
  OperandOf,
  OpOf,
  Patch,
  Row as RowOf,
  Selected,
  SortName,
  Upsert,
} from './rows.ts'

/** The answer of `list`: a page by number, with a total. */
export interface ListPage<Row> {
  items: Row[]
  total: number
  page: number
  perPage: number
}

/** The answer of `page`: a page by cursor. */
export interface CursorPage<Row> {
  items: Row[]
  cursor: string
  hasMore: boolean
}

/** The answer of `search`, best match first. */
export interface SearchPage<Row> {
  items: (Row & { highlights?: { [field: string]: string } })[]
  total: number
}

/** The answer of a change by filter. */
export interface BulkResult {
  /** Rows that matched, at most 500. */
  processed: number
  /** Rows that were changed. */
  succeeded: number
}

export interface ListOptions extends Call {
  page?: number
  offset?: number
}

export interface PageOptions extends Call {
  after?: string
  before?: string
}

export interface SearchOptions extends Call {
  /** The tags around a matching word; default `<mark>` and `</mark>`. */
  highlight?: [pre: string, post: string]
  offset?: number
}

export interface InsertOptions extends Call {
  idempotencyKey?: string
}

export interface UpsertOptions<Declaration = Untyped> extends Call {
  /** The unique field by which an existing row is found; default `id`. */
  on?: FieldName<Declaration>
}

export interface ChangeOptions extends Call {
  /** The version of the row that the change is based on, from `versionOf`. */
  ifMatch?: string
}

/** A query over one table. Immutable: each method returns a new query. */
export interface Query<Row, Declaration = Untyped, Scope = Untyped> {
  /** A field, or through relations: `'author.role'`, and `'comments', 'some', [[…]]`. */
  where<const Name extends FieldName<Declaration> | RelationPath<Scope>, const Op extends OpOf<Declaration, Name>>(
    field: Name,
    op: Op,
    value: OperandOf<Declaration, Name, Op>,
  ): Query<Measured<Row, Name, Op>, Declaration, Scope>
  /** At least one of the conditions matches. */
  or(...conditions: (Condition<Declaration> | RelationCondition<Scope>)[]): Query<Row, Declaration, Scope>
  sort(field: SortName<Declaration>, direction?: 'asc' | 'desc'): Query<Row, Declaration, Scope>
  /** Limits the answer to these fields, and relations that are included. */
  select<const Name extends FieldName<Declaration>>(
    ...fields: Name[]
  ): Query<Selected<Row, Name | Exclude<keyof Row, FieldName<Declaration>>>, Declaration, Scope>
  limit(n: number): Query<Row, Declaration, Scope>
  /** Related records, by relation, in each row of the answer. Not for live lists. */
  include<const Relations extends IncludeOf<Scope> & object>(
    relations: Relations & OnlyRelations<Scope, Relations>,
  ): Query<WithIncluded<Row, Scope, Relations>, Declaration, Scope>
  /** A page by number, with a total. */
  list(options?: ListOptions): Promise<ListPage<Row>>
  /** A page by cursor. */
  page(options?: PageOptions): Promise<CursorPage<Row>>
  first(options?: Call): Promise<Row | null>
  count(options?: Call): Promise<number>
  search(text: string, options?: SearchOptions): Promise<SearchPage<Row>>
  /** Groups the rows for `aggregate`, by fields, periods of local time and ranges; at most 4 keys. */
  groupBy<const Keys extends readonly GroupKey<Declaration>[]>(...keys: Keys): GroupedQuery<Declaration, Keys[number]>
  /** One group of all rows that match; at most 10 measures. */
  aggregate<const Measured extends Measures<Declaration>>(
    measures: Measured,
    options?: AggregateOptions,
  ): Promise<Groups<Declaration, never, Measured>>
  /** All rows, page by page by cursor. */
  [Symbol.asyncIterator](): AsyncIterator<Row>
  /** Changes all rows that match, at most 500. Refused without a `where`. */
  update(patch: Patch<Declaration>, options?: Call): Promise<BulkResult>
  /** Deletes all rows that match, at most 500. Refused without a `where`. */
  delete(options?: Call): Promise<BulkResult>
  /** Without a limit the first 100 rows; the limit is at most 1,000. Rows that change have no `distances`. */
  live(): LiveList<Row>
}

/** A table: all its rows as a query, and changes of single rows. */
export interface Table<Row = Untyped, Declaration = Untyped, Scope = Untyped> extends Query<Row, Declaration, Scope> {
  /** Rejects with slug `not-found` if there is no such row, or none that the caller may read. */
  get(id: string, options?: Call): Promise<Row>
  find(id: string, options?: Call): Promise<Row | null>
  insert(row: Insert<Declaration>, options?: InsertOptions): Promise<Row>
  upsert(
    row: Upsert<Declaration>,
    options?: UpsertOptions<Declaration>,
  ): Promise<Row & { action: 'inserted' | 'updated' }>
  update(patch: Patch<Declaration>, options?: Call): Promise<BulkResult>
  // The last of several signatures is the one that error messages are about.
  update(id: string, patch: Patch<Declaration>, options?: ChangeOptions): Promise<Row>
  delete(options?: Call): Promise<BulkResult>
  delete(id: string, options?: ChangeOptions): Promise<void>
  liveRecord(id: string): LiveRecord<Row>
  /** The same changes, shown in live lists at once and rolled back if the server refuses them. */
  readonly optimistic: Pick<Table<Row, Declaration>, 'insert' | 'update' | 'delete'>
}

/** A table of a configuration. */
export type TableOf<Config, Namespace extends string, Name> = Table<
  RowOf<TableDeclaration<Config, Namespace, Name>>,
  TableDeclaration<Config, Namespace, Name>,
  unknown extends Config ? Untyped : TableScope<TablesOf<Config, Namespace>, Name>
>

/** Changes of one table within a batch. */
export interface BatchTable<Declaration = Untyped> {
  insert(row: Insert<Declaration>): void
  upsert(row: Upsert<Declaration>, options?: { on?: FieldName<Declaration> }): void
  update(id: string, patch: Patch<Declaration>, options?: { ifMatch?: string }): void
  delete(id: string, options?: { ifMatch?: string }): void
}

/** The tables of a batch, by name. */
export type BatchBuilder<Config = unknown, Namespace extends string = 'shared'> = unknown extends Config
  ? { readonly [table: string]: Untyped }
  : { readonly [Name in TableName<Config, Namespace>]: BatchTable<TableDeclaration<Config, Namespace, Name>> }

/** What a batch has changed in one table. */
export interface TableChanges<Name = string, Row = Untyped> {
  table: Name
  /** Upserted rows included. */
  inserted: Row[]
  updated: Row[]
  /** Ids. */
  deleted: string[]
}

/** What a batch has changed in one of the tables; `table` says in which one, and so the type of its rows. */
export type BatchResult<Config = unknown, Namespace extends string = 'shared'> = unknown extends Config
  ? TableChanges
  : {
      [Name in TableName<Config, Namespace>]: TableChanges<Name, RowOf<TableDeclaration<Config, Namespace, Name>>>
    }[TableName<Config, Namespace>]

/** The tables of a transaction, by name; `ifMatch` of what was read is checked when it is committed. */
export type Transaction<Config = unknown, Namespace extends string = 'shared'> = unknown extends Config
  ? { readonly [table: string]: Untyped }
  : {
      readonly [Name in TableName<Config, Namespace>]: TransactionTable<
        RowOf<TableDeclaration<Config, Namespace, Name>>,
        TableDeclaration<Config, Namespace, Name>
      >
    }

/** A query within a transaction. Immutable: each method returns a new query. */
export interface TransactionQuery<Row = Untyped, Declaration = Untyped> {
  where<const Name extends FieldName<Declaration>, const Op extends OpOf<Declaration, Name>>(
    field: Name,
    op: Op,
    value: OperandOf<Declaration, Name, Op>,
  ): TransactionQuery<Measured<Row, Name, Op>, Declaration>
  or(...conditions: Condition<Declaration>[]): TransactionQuery<Row, Declaration>
  sort(field: SortName<Declaration>, direction?: 'asc' | 'desc'): TransactionQuery<Row, Declaration>
  select<const Name extends FieldName<Declaration>>(
    ...fields: Name[]
  ): TransactionQuery<Selected<Row, Name>, Declaration>
  limit(n: number): TransactionQuery<Row, Declaration>
  /** The first 100 rows, unless `limit` is set. Before the first write to the table. */
  list(options?: Call): Promise<{ items: Row[] }>
  first(options?: Call): Promise<Row | null>
}

/** A table within a transaction: reads at once, changes when the transaction is committed. */
export interface TransactionTable<Row = Untyped, Declaration = Untyped>
  extends BatchTable<Declaration>,
    TransactionQuery<Row, Declaration> {
  /** The row as the transaction has left it, with the values that it has written so far. */
  get(id: string, options?: Call): Promise<Row>
  find(id: string, options?: Call): Promise<Row | null>
}

export interface TransactionOptions extends Call {
  /** How often the work is tried while what it has read changes; default 6. */
  attempts?: number
}

interface DatabaseMethods<Config, Namespace extends string> {
  table<const Name extends TableName<Config, Namespace>>(name: Name): TableOf<Config, Namespace, Name>
  /** All or nothing, also over several tables; a result per table in the order of first use. */
  batch(build: (tx: BatchBuilder<Config, Namespace>) => void, options?: Call): Promise<BatchResult<Config, Namespace>[]>
  /**
   * Several tables, all or nothing, serializable: repeated when a row or a list that was read has changed meanwhile.
   */
  transaction<T>(work: (tx: Transaction<Config, Namespace>) => Promise<T>, options?: TransactionOptions): Promise<T>
}

/** The tables of a namespace: `db('shared').posts`, or `db('shared').table('posts')`. */
export type Database<Config = unknown, Namespace extends string = 'shared'> = DatabaseMethods<Config, Namespace> &
  (unknown extends Config
    ? { readonly [table: string]: Untyped }
    : {
        readonly [Name in Exclude<TableName<Config, Namespace>, keyof DatabaseMethods<Config, Namespace>>]: TableOf<
          Config,
          Namespace,
          Name
        >
      })
