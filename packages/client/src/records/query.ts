/** Queries: conditions, order and range of the records of a table. Immutable; each method returns a new query. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import { failure } from '../core/error.ts'
import type { Reply } from '../core/request.ts'
import { setVersions } from './versions.ts'

export type Row = Record<string, unknown> & { readonly id: string }
export type Tuple = readonly [field: string, op: string, value: unknown]

/** What a query consists of. */
export interface QueryParts {
  readonly filter: readonly Tuple[]
  readonly orFilter: readonly Tuple[]
  readonly sort: readonly (readonly [field: string, direction: 'asc' | 'desc'])[]
  readonly fields: readonly string[]
  readonly limit?: number
  readonly include?: object
}

export const noParts: QueryParts = { filter: [], orFilter: [], sort: [], fields: [] }

/** The table that a query reads. */
export interface Source {
  readonly core: Core
  readonly table: string
  /** `/api/db/{namespace}[/{instanceId}]/tables/{table}`. */
  readonly path: string
  /** `dblive:{namespace}[:{instanceId}]:{table}`. */
  readonly channel: string
}

interface ListAnswer {
  items: Row[]
  versions?: number[]
  [member: string]: unknown
}

/** A page of records, with the members that the server sends. */
export type Page = { items: Row[] } & Record<string, unknown>

/** Largest page, in records. */
const pageMax = 1000

const nonEmpty = <Value extends readonly unknown[] | string>(value: Value): Value | undefined =>
  value.length > 0 ? value : undefined

/** The conditions, as list, count and search take them. */
export const conditionsOf = ({ filter, orFilter }: QueryParts): Record<string, unknown> => ({
  filter: nonEmpty(filter),
  orFilter: nonEmpty(orFilter),
})

/** The parameters of a list. */
export const parametersOf = (parts: QueryParts): Record<string, unknown> => ({
  ...conditionsOf(parts),
  sort: nonEmpty(parts.sort.map((key) => key.join(':')).join()),
  fields: nonEmpty(parts.fields.join()),
  limit: parts.limit,
  include: parts.include,
})

/** The page of an answer, whose rows know their versions. */
export function readPage({ data }: Reply): Page {
  const { versions, ...page } = data as ListAnswer
  setVersions(page.items, versions)
  return page
}

export class Query {
  constructor(
    readonly source: Source,
    readonly parts: QueryParts,
  ) {}

  #with(parts: Partial<QueryParts>): Query {
    return new Query(this.source, { ...this.parts, ...parts })
  }

  where(field: string, op: string, value: unknown): Query {
    return this.#with({ filter: [...this.parts.filter, [field, op, value]] })
  }

  or(...tuples: Tuple[]): Query {
    return this.#with({ orFilter: [...this.parts.orFilter, ...tuples] })
  }

  sort(field: string, direction: 'asc' | 'desc' = 'asc'): Query {
    return this.#with({ sort: [...this.parts.sort, [field, direction]] })
  }

  select(...fields: string[]): Query {
    return this.#with({ fields: [...this.parts.fields, ...fields] })
  }

  limit(limit: number): Query {
    return this.#with({ limit })
  }

  include(include: object): Query {
    return this.#with({ include: { ...this.parts.include, ...include } })
  }

  #read(path: string, query: Record<string, unknown>, options?: Call): Promise<Reply> {
    const { core, path: base } = this.source
    return core.send('GET', base + path, { ...options, query })
  }

  async #list(query: Record<string, unknown>, options?: Call): Promise<Page> {
    return readPage(await this.#read('', { ...parametersOf(this.parts), versions: '1', ...query }, options))
  }

  list(options: Call & { page?: number; offset?: number } = {}): Promise<Page> {
    return this.#list({ page: options.page, offset: options.offset }, options)
  }

  page(options: Call & { after?: string; before?: string } = {}): Promise<Page> {
    const { after, before } = options
    return this.#list(before === undefined ? { after: after ?? '' } : { after, before }, options)
  }

  async first(options?: Call): Promise<Row | null> {
    const { items } = await this.#list({ after: '', limit: 1 }, options)
    return items[0] ?? null
  }

  async count(options?: Call): Promise<number> {
    const { data } = await this.#read('/count', conditionsOf(this.parts), options)
    return (data as { total: number }).total
  }

  async search(
    text: string,
    options: Call & { highlight?: [pre: string, post: string]; offset?: number } = {},
  ): Promise<Page> {
    const { sort: _, ...parameters } = parametersOf(this.parts)
    const [highlightPre, highlightPost] = options.highlight ?? []
    const query = { q: text, ...parameters, versions: '1', offset: options.offset, highlightPre, highlightPost }
    return readPage(await this.#read('/search', query, options))
  }

  /** All rows in order, page by page; the next page is requested when the rows of the last one are used up. */
  async *[Symbol.asyncIterator](): AsyncIterator<Row> {
    let left = this.parts.limit ?? Infinity
    let after: unknown = ''
    for (let hasMore = true; hasMore && left > 0; ) {
      const page = await this.#list({ after, limit: Math.min(left, this.parts.limit ? pageMax : 100) })
      yield* page.items.slice(0, left)
      left -= page.items.length
      after = page.cursor
      hasMore = (page.hasMore === true || page.truncated === true) && page.cursor !== null
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
    const { filter, orFilter } = this.parts
    if (filter.length + orFilter.length === 0) throw failure('invalid-input', `A ${action} by filter needs a \`where\``)
    const body = { action, filter, orFilter: nonEmpty(orFilter), limit: this.parts.limit, data }
    return (await core.post(`${path}/batch-by-filter`, body, options)).data
  }

  /** The live list of the query; lists of the same query share one subscription. */
  live(): unknown {
    return this.source.core.part<(query: Query) => unknown>('live')(this)
  }
}
