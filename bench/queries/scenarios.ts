/** The queries, and what answers the same at the floor and at a peer. */
import type { LoadRequest } from '../load/load-requests.ts'
import { clients } from '../scenarios.ts'
import { hash } from '../setup/data.ts'
import type { AggregateName } from './baseline.ts'
import { places, topicAt, topics } from './data.ts'

const page = 30

export type Competitor =
  | { readonly kind: 'requests'; readonly requests: () => LoadRequest[] }
  | { readonly kind: 'loop'; readonly loop: AggregateName }

export interface QueryScenario {
  readonly title: string
  readonly connections: number
  readonly requests: () => LoadRequest[]
  readonly floor: { readonly title: string } & Competitor
  /** Null where PocketBase has no such query. */
  readonly pocketbase: (() => LoadRequest[]) | null
}

const get = (path: string, parameters: Record<string, unknown> = {}, items = page): LoadRequest => {
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`)
    .join('&')
  const text = `GET ${path}${query === '' ? '' : `?${query}`} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  return { text, expect: items === 0 ? { status: 200 } : { status: 200, items } }
}

const table = (name: string): string => `/api/db/shared/tables/${name}`
const byTopic = (request: (topic: string) => LoadRequest): LoadRequest[] =>
  Array.from({ length: topics }, (_, number) => request(topicAt(number)))

const listed = (topic: string): Record<string, unknown> => ({
  filter: [['topic', '==', topic]],
  sort: 'rank:desc',
  limit: String(page),
  after: '',
})

/** The same list. */
const inPocketBase = (topic: string, more: Record<string, string> = {}): LoadRequest =>
  get('/api/collections/posts/records', {
    filter: `topic='${topic}'`,
    sort: '-rank',
    perPage: String(page),
    skipTotal: '1',
    ...more,
  })

const aggregate = (title: string, loop: AggregateName, parameters: Record<string, unknown>): QueryScenario => ({
  title,
  connections: 1,
  // A filter that differs from the one before, so that no result is reused.
  requests: () =>
    Array.from({ length: 2000 }, (_, least) =>
      get(`${table('orders')}/aggregate`, { ...parameters, filter: [['amount', '>=', least]] }, 0),
    ),
  floor: { title: 'same SQL in a loop', kind: 'loop', loop },
  pocketbase: null,
})

/** Different places, so that no page is in a cache. */
const placesVariety = 2000
const placeAt = (number: number): (typeof places)[number] => places[hash(number) % places.length] as never

const many = (request: (number: number) => LoadRequest): LoadRequest[] =>
  Array.from({ length: placesVariety }, (_, number) => request(number))

const nearby = (kilometers: number): QueryScenario => ({
  title: `Nearest 20 within ${kilometers} km`,
  connections: clients,
  requests: () =>
    many((number) =>
      get(
        table('places'),
        {
          filter: [['position', 'near', [...placeAt(number).position, `${kilometers}km`]]],
          sort: 'position.distance',
          limit: '20',
          after: '',
        },
        0,
      ),
    ),
  floor: {
    title: 'minimal handler, box in an index',
    kind: 'requests',
    requests: () => many((number) => get(`/near/${placeAt(number).position.join('/')}/${kilometers * 1000}`, {}, 0)),
  },
  // PocketBase visits every row: 0.7 s of CPU per request, which no round would complete.
  pocketbase: null,
})

/** Words of eight ASCII letters or more, which have two typos. */
const words = [...new Set(places.map(({ name }) => name.toLowerCase()).filter((name) => /^[a-z]{8,}$/.test(name)))]
const wordAt = (number: number): string => words[hash(number) % words.length] as string
/** Two letters in the middle are swapped, which is one typo. */
const misspelled = (word: string): string => word.slice(0, 3) + word[4] + word[3] + word.slice(5)

/** A client has at most 32 slow requests in the queue of the reader threads, and all of these have one address. */
const searchers = 16

const searched = (title: string, typed: (word: string) => string): QueryScenario => ({
  title,
  connections: searchers,
  requests: () => many((number) => get(`${table('places')}/search`, { q: typed(wordAt(number)), limit: '20' }, 0)),
  floor: {
    title: 'minimal handler, FTS5, exact word',
    kind: 'requests',
    requests: () => many((number) => get(`/search/${wordAt(number)}`, {}, 0)),
  },
  pocketbase: null,
})

export const queryScenarios = (orders: string): readonly QueryScenario[] => [
  {
    title: `List of ${page} with author and latest 3 comments`,
    connections: clients,
    requests: () =>
      byTopic((topic) =>
        get(table('posts'), { ...listed(topic), include: { author: {}, comments: { sort: 'rank:desc', limit: 3 } } }),
      ),
    floor: {
      title: 'minimal handler, one statement',
      kind: 'requests',
      requests: () => byTopic((topic) => get(`/posts/${topic}`)),
    },
    pocketbase: () => byTopic((topic) => inPocketBase(topic, { expand: 'authorId,comments_via_postId' })),
  },
  {
    title: 'The same list without related records',
    connections: clients,
    requests: () => byTopic((topic) => get(table('posts'), listed(topic))),
    floor: {
      title: 'minimal handler',
      kind: 'requests',
      requests: () => byTopic((topic) => get(`/plain/${topic}`)),
    },
    pocketbase: () => byTopic((topic) => inPocketBase(topic)),
  },
  aggregate(`Count and sum by status, ${orders} rows`, 'status', {
    group: ['status'],
    measures: { n: 'count', total: { sum: 'amount' } },
  }),
  aggregate(`Count and sum by month in Berlin, ${orders} rows`, 'month', {
    group: [{ month: 'orderedAt', tz: 'Europe/Berlin' }],
    measures: { n: 'count', total: { sum: 'amount' } },
  }),
  aggregate(`Distinct buyers by status, ${orders} rows`, 'buyers', {
    group: ['status'],
    measures: { buyers: { countDistinct: 'buyerId' } },
  }),
  nearby(5),
  nearby(50),
  searched('Search with typos for a word as it is written', (word) => word),
  searched('Search with typos for a word with two letters swapped', misspelled),
  {
    title: 'The same result again',
    connections: clients,
    requests: () => [
      get(`${table('orders')}/aggregate`, { group: ['status'], measures: { n: 'count', total: { sum: 'amount' } } }, 0),
    ],
    floor: { title: 'bare handler', kind: 'requests', requests: () => [get('/bare', {}, 0)] },
    pocketbase: null,
  },
]
