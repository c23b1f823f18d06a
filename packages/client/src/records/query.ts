/** Queries: conditions, order and range of the records of a table. Immutable; each method returns a new query. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import { failure } from '../core/error.ts'
import { keyed, type Request } from '../core/request.ts'
import { setVersions } from './versions.ts'

export type Row = Record<string, unknown> & { readonly id: string }
export type Tuple = readonly [field: string, op: string, value: unknown]

/** What a query consists of. */
export interface QueryParts {
  readonly filter?: readonly Tuple[] | undefined
  readonly orFilter?: readonly Tuple[] | undefined
  /** Keys such as `title:desc`. */
  readonly sort?: readonly string[] | undefined
  readonly fields?: readonly string[]
  readonly limit?: number
  readonly include?: object
  readonly group?: readonly unknown[]
}

/** The table that a query reads. */
export interface Source {
  readonly core: Core
  readonly table: string
  /** `/api/db/{namespace}[/{instanceId}]/tables/{table}`. */
  readonly path: string
  /** `dblive:{namespace}[:{instanceId}]:{table}`. */
  readonly channel: string
  /** Sends a request; its path continues that of the table. Resolves with its data, whose version is remembered. */
  send<Data>(method: string, path: string, request: Request): Promise<Data>
}

/** What the feature `live` offers to queries and tables. */
export interface LiveResults {
  list(query: Query): unknown
  record(table: Query, id: string): unknown
  optimistic(table: Query): unknown
}

/** A call, and parameters of its request that are not parts of the query. */
interface PageOptions extends Call {
  readonly page?: number
  readonly offset?: number
  readonly after?: unknown
  readonly before?: string
  readonly limit?: number | undefined
  readonly q?: string
  /** What stands before and after each match. */
  readonly highlight?: readonly string[]
}

/** A page of records, with the members that the server sends. */
export type Page = { items: Row[] } & Record<string, unknown>

export class Query {
  declare readonly source: Source
  declare readonly parts: QueryParts

  constructor(source: Source, parts: QueryParts = {}) {
    this.source = source
    this.parts = parts
  }

  #with(parts: QueryParts): Query {
    return new Query(this.source, { ...this.parts, ...parts })
  }

  #add(part: 'filter' | 'orFilter' | 'sort' | 'fields', items: readonly unknown[]): Query {
    return items.length > 0 ? this.#with({ [part]: [...(this.parts[part] ?? []), ...items] }) : this
  }

  where(...tuple: Tuple): Query {
    return this.#add('filter', [tuple])
  }

  or(...tuples: Tuple[]): Query {
    return this.#add('orFilter', tuples)
  }

  sort(field: string, direction: 'asc' | 'desc' = 'asc'): Query {
    return this.#add('sort', [`${field}:${direction}`])
  }

  select(...fields: string[]): Query {
    return this.#add('fields', fields)
  }

  limit(limit: number): Query {
    return this.#with({ limit })
  }

  include(include: object): Query {
    return this.#with({ include: { ...this.parts.include, ...include } })
  }

  groupBy(...group: unknown[]): Query {
    return this.#with({ group })
  }

  async aggregate(
    measures: object,
    { having, search: q, ...options }: Call & { having?: unknown[]; search?: string } = {},
  ): Promise<object[] & { truncated: boolean }> {
    type Answer = { groups: object[]; truncated: boolean }
    const query = { ...this.parts, include: undefined, measures, having, q }
    const { groups, truncated } = await this.#get<Answer>('/aggregate', query, options)
    return Object.assign(groups, { truncated })
  }

  /** A page; what is no option of the call is a parameter of the request. */
  async #page({ signal, timeout, ...query }: PageOptions = {}, path = ''): Promise<Page> {
    type Answer = Page & { versions?: number[] }
    const parameters = { ...this.parts, versions: '1', ...query }
    const { versions, ...page } = await this.#get<Answer>(path, parameters, { signal, timeout })
    setVersions(page.items, versions)
    return page
  }

  #get<Data>(path: string, query: object, options?: Call): Promise<Data> {
    return this.source.send('GET', path, { ...options, query })
  }

  list(options?: Call & { page?: number; offset?: number }): Promise<Page> {
    return this.#page(options)
  }

  page(options: Call & { after?: string; before?: string } = {}): Promise<Page> {
    const { before, after = before === undefined ? '' : undefined } = options
    return this.#page({ ...options, after })
  }

  async first(options?: Call): Promise<Row | null> {
    const { items } = await this.#page({ ...options, after: '', limit: 1 })
    return items[0] ?? null
  }

  async count(options?: Call): Promise<number> {
    const { filter, orFilter } = this.parts
    return (await this.#get<{ total: number }>('/count', { filter, orFilter }, options)).total
  }

  search(text: string, options?: PageOptions): Promise<Page> {
    return this.#page({ ...options, q: text }, '/search')
  }

  /** All rows in order, page by page; the next page is requested when the rows of the last one are used up. */
  async *[Symbol.asyncIterator](): AsyncIterator<Row> {
    for await (const { items } of this.pages()) yield* items
  }

  /** The pages up to the limit. */
  async *pages(options?: Call): AsyncGenerator<Page> {
    let { limit } = this.parts
    for (let after: unknown = ''; after !== null && limit !== 0; ) {
      // The server has a default and a maximum of its own, and ends a page early that would have too many bytes.
      const page = await this.#page({ ...options, after, limit })
      yield page
      limit &&= limit - page.items.length
      after = page.hasMore ? page.cursor : null
    }
  }

  update(data: object, options?: Call): Promise<unknown> {
    return this.#byFilter('update', data, options)
  }

  delete(options?: Call): Promise<unknown> {
    return this.#byFilter('delete', undefined, options)
  }

  async #byFilter(action: string, data: object | undefined, options?: Call): Promise<unknown> {
    const { filter, orFilter, limit } = this.parts
    if (!filter && !orFilter) throw failure('invalid-input', 'No `where`')
    const body = { action, filter, orFilter, limit, data }
    return this.source.send('POST', '/batch-by-filter', keyed({ ...options, body }))
  }

  /** The live list of the query; lists of the same query share one subscription. */
  live(): unknown {
    return this.source.core.part<LiveResults>('live').list(this)
  }
}
