/** Queries: conditions, order and range of the records of a table. Immutable; each method returns a new query. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import { failure } from '../core/error.ts'
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
}

/** The table that a query reads. */
export interface Source {
  readonly core: Core
  readonly table: string
  /** `/api/db/{namespace}[/{instanceId}]/tables/{table}`. */
  readonly path: string
  /** `dblive:{namespace}[:{instanceId}]:{table}`. */
  readonly channel: string
}

/** What the feature `live` offers to queries and tables. */
export interface LiveResults {
  list(query: Query): unknown
  record(table: Query, id: string): unknown
  optimistic(table: Query): unknown
}

/** A page of records, with the members that the server sends. */
export type Page = { items: Row[] } & Record<string, unknown>

/** Largest page, in records, and the page of a query without a limit. */
const pageMax = 1000
const pageDefault = 100

export class Query {
  constructor(
    readonly source: Source,
    readonly parts: QueryParts = {},
  ) {}

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

  async #page(query: object, options?: Call, path = ''): Promise<Page> {
    const { sort, fields } = this.parts
    const parameters = { ...this.parts, sort: sort?.join(), fields: fields?.join(), versions: '1', ...query }
    const { versions, ...page } = await this.#get<Page & { versions?: number[] }>(path, parameters, options)
    setVersions(page.items, versions)
    return page
  }

  #get<Data>(path: string, query: object, options?: Call): Promise<Data> {
    const { core, path: base } = this.source
    return core.json('GET', base + path, { ...options, query })
  }

  list({ page, offset, ...options }: Call & { page?: number; offset?: number } = {}): Promise<Page> {
    return this.#page({ page, offset }, options)
  }

  page(options: Call & { after?: string; before?: string } = {}): Promise<Page> {
    const { before, after = before === undefined ? '' : undefined, ...call } = options
    return this.#page({ before, after }, call)
  }

  async first(options?: Call): Promise<Row | null> {
    const { items } = await this.#page({ after: '', limit: 1 }, options)
    return items[0] ?? null
  }

  async count(options?: Call): Promise<number> {
    const { filter, orFilter } = this.parts
    return (await this.#get<{ total: number }>('/count', { filter, orFilter }, options)).total
  }

  search(
    text: string,
    { highlight, offset, ...options }: Call & { highlight?: [pre: string, post: string]; offset?: number } = {},
  ): Promise<Page> {
    const [highlightPre, highlightPost] = highlight ?? []
    return this.#page({ q: text, sort: undefined, offset, highlightPre, highlightPost }, options, '/search')
  }

  /** All rows in order, page by page; the next page is requested when the rows of the last one are used up. */
  async *[Symbol.asyncIterator](): AsyncIterator<Row> {
    for await (const { items } of this.pages()) yield* items
  }

  /** The pages up to the limit. */
  async *pages(): AsyncGenerator<Page> {
    const { limit } = this.parts
    let left = limit ?? Infinity
    for (let after: unknown = ''; left > 0 && after !== null; ) {
      const page = await this.#page({ after, limit: Math.min(left, limit ? pageMax : pageDefault) })
      yield page
      left -= page.items.length
      // The server's byte budget may have ended the page early.
      after = page.hasMore || page.truncated ? page.cursor : null
    }
  }

  async update(data: object, options?: Call): Promise<unknown> {
    return this.#byFilter('update', data, options)
  }

  async delete(options?: Call): Promise<unknown> {
    return this.#byFilter('delete', undefined, options)
  }

  async #byFilter(action: string, data: object | undefined, options?: Call): Promise<unknown> {
    const { core, path } = this.source
    const { filter, orFilter, limit } = this.parts
    if (!filter && !orFilter) throw failure('invalid-input', 'No `where`')
    return (await core.post(`${path}/batch-by-filter`, { action, filter, orFilter, limit, data }, options)).data
  }

  /** The live list of the query; lists of the same query share one subscription. */
  live(): unknown {
    return this.source.core.part<LiveResults>('live').list(this)
  }
}
