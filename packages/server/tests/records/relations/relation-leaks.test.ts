/**
 * Leak probes: records that a caller may not read are added, changed and removed, and no answer through `include`,
 * conditions, counts, pages or errors changes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Client, query } from '../../harness/client.ts'
import { blogConfig, blogRows, insertRows, tablePath } from '../../harness/records/relations.ts'
import { describeServer } from '../../harness/server.ts'

const posts = tablePath('posts')
const bytesMax = 64 * 1024
const numbered = (count: number): number[] => Array.from({ length: count }, (_, at) => at)

/** All of an answer but its time and the id of the request. */
const contentOf = ({ status, text, headers }: Answer) => ({ status, text, tag: headers.get('etag') })

const list =
  (parameters: object, table = 'posts') =>
  (client: Client) =>
    client.get(tablePath(table) + query({ ...parameters }))
const count = (filter: unknown) => (client: Client) => client.get(`${posts}/count${query({ filter })}`)
const comments = (options: object) => ({ include: { comments: options } })

const probes: readonly (readonly [title: string, send: (client: Client) => Promise<Answer>])[] = [
  ['a forward record that is denied', list({ include: { author: {} } })],
  ['a forward record with a condition', list({ include: { author: { where: [['role', '!=', 'x']] } } })],
  ['backward records', list(comments({}))],
  ['the number of backward records', list(comments({ count: true, limit: 0 }))],
  ['the first of backward records', list(comments({ sort: 'rank:desc', limit: 1, count: true }))],
  ['the last of backward records', list(comments({ sort: 'rank:asc,id:desc', limit: 2 }))],
  ['backward records with a condition', list(comments({ where: [['rank', '>', 2]], count: true }))],
  ['backward records of a table that is denied', list({ include: { reports: { count: true } } })],
  ['nested records', list(comments({ count: true, include: { author: {}, post: { include: { author: {} } } } }))],
  [
    'a single record',
    (client) => client.get(`${posts}/p1${query(comments({ count: true, include: { author: {} } }))}`),
  ],
  ['a single record with a denied one', (client) => client.get(`${posts}/p2${query({ include: { author: {} } })}`)],
  ['a draft with its comments', (client) => client.get(`${posts}/p4${query(comments({}))}`)],
  ['a search', (client) => client.get(`${posts}/search${query({ q: 'fish', ...comments({ count: true }) })}`)],
  ['posts of a user', list({ include: { 'posts.authorId': { count: true } } }, 'users')],
  ['the post of a comment', list({ include: { post: {} } }, 'comments')],
  ['notes under a rule with exists', list({ include: { notes: { count: true } } }, 'teams')],
  ['a page and its cursor', list({ after: '', limit: 2, ...comments({ count: true }) })],
  ['a value of a denied record', count([['author.role', '==', 'editor']])],
  ['a negated value of a denied record', count([['author.role', '!=', 'editor']])],
  ['a list of values', count([['author.name', 'not in', ['Ann', 'Bob']]])],
  ['an empty field of a denied record', count([['author.role', '==', null]])],
  ['the order of a denied record', count([['author.name', '>', 'Da']])],
  ['some denied record', count([['comments', 'some', [['rank', '>', 2]]]])],
  ['some text of a denied record', count([['comments', 'some', [['body', 'contains', 's']]]])],
  ['none of denied records', count([['comments', 'none', [['rank', '>', 2]]]])],
  ['no record at all', count([['comments', 'none', []]])],
  ['some record of a denied table', count([['reports', 'some', [['reason', '==', 'spam']]]])],
  ['no record of a denied table', count([['reports', 'none', []]])],
  ['denied records within others', count([['comments', 'some', [['author.role', '==', 'editor']]]])],
  ['no denied record within others', count([['comments', 'none', [['author.role', '!=', 'editor']]]])],
  ['notes under a rule with exists, in a condition', list({ filter: [['notes', 'some', []]] }, 'teams')],
  [
    'an alternative',
    list({
      orFilter: [
        ['author.role', '==', 'editor'],
        ['reports', 'some', []],
      ],
    }),
  ],
  [
    'a search with a condition',
    (client) =>
      client.get(`${posts}/search${query({ q: 'fish', filter: [['comments', 'some', [['rank', '>', 3]]]] })}`),
  ],
  ['a check of a list', list({ check: '1', filter: [['comments', 'some', [['rank', '>', 2]]]] })],
  ['a hidden field of a related record', count([['author.email', 'contains', '@']])],
  ['a relation by a hidden field', list({ include: { reviewer: {} } })],
  ['a condition through a hidden field', count([['reviewer.name', '==', 'Bob']])],
  [
    'a change by condition',
    (client) =>
      client.post(`${posts}/batch-by-filter`, {
        action: 'update',
        data: { views: 1 },
        filter: [['reports', 'some', []]],
      }),
  ],
  [
    'a removal by condition',
    (client) => client.post(`${posts}/batch-by-filter`, { action: 'delete', filter: [['author.name', '==', 'Eve']] }),
  ],
]

describeServer(
  'leaks through relations',
  { config: { ...blogConfig, limits: { responseBytes: bytesMax } } },
  (server) => {
    const callers = { anonymous: server.anonymous, bob: server.as('bob') }
    type CallerName = keyof typeof callers
    const before = new Map<string, unknown>()
    const keyOf = (caller: string, title: string): string => `${caller}: ${title}`

    beforeAll(async () => {
      await insertRows(server.service, blogRows)
      for (const [caller, client] of Object.entries(callers))
        for (const [title, send] of probes) before.set(keyOf(caller, title), contentOf(await send(client)))
    })

    const change = async (run: () => Promise<Answer>): Promise<void> => {
      const { status, text } = await run()
      if (status >= 300) throw new Error(text)
    }

    const worlds: readonly (readonly [string, () => Promise<void>])[] = [
      [
        'denied records are added',
        async () => {
          const denied = { authorId: 'eve', flagged: true, body: 'secrets' }
          const flagged = numbered(40).map((at) => ({
            id: `d${at}`,
            postId: `p${1 + (at % 3)}`,
            rank: at - 20,
            ...denied,
          }))
          await insertRows(server.service, {
            comments: flagged,
            reports: numbered(5).map((at) => ({ id: `x${at}`, postId: `p${1 + (at % 3)}`, reason: 'spam' })),
            posts: [{ id: 'draft', title: 'fish', status: 'draft', authorId: 'ann', editor_id: 'bob' }],
            members: [{ id: 'mx', teamId: 't2', userId: 'eve' }],
            notes: [{ id: 'nx', teamId: 't1', body: 'x' }],
          })
        },
      ],
      [
        'denied records are changed',
        async () => {
          await change(() =>
            server.service.patch(`${tablePath('users')}/eve`, { name: 'Zoe', role: null, email: 'other' }),
          )
          const filter = [
            ['flagged', '==', true],
            ['authorId', '==', 'eve'],
          ]
          const data = { rank: 99, body: 'sss' }
          await change(() =>
            server.service.post(`${tablePath('comments')}/batch-by-filter`, { action: 'update', data, filter }),
          )
        },
      ],
      [
        // Whether a request is refused, or a page is cut, must not depend on them either.
        'denied records exceed the bounds of a request',
        async () => {
          for (const part of [0, 500]) {
            const flagged = numbered(500).map((at) => ({
              id: `m${part + at}`,
              postId: 'p1',
              authorId: 'eve',
              flagged: true,
            }))
            for (const slice of [flagged.slice(0, 250), flagged.slice(250)])
              await insertRows(server.service, { comments: slice })
          }
          const long = 'x'.repeat(bytesMax / 2)
          for (const at of numbered(4))
            await insertRows(server.service, {
              comments: [{ id: `l${at}`, postId: 'p1', authorId: 'eve', flagged: true, body: long }],
            })
          await change(() => server.service.patch(`${tablePath('users')}/eve`, { name: long }))
        },
      ],
      [
        'denied records are removed',
        async () => {
          const filter = [
            ['flagged', '==', true],
            ['authorId', '==', 'eve'],
          ]
          for (let left = 1; left > 0; ) {
            const { body } = await server.service.post(`${tablePath('comments')}/batch-by-filter`, {
              action: 'delete',
              filter,
              limit: 100,
            })
            left = body.processed
          }
          for (let left = 1; left > 0; )
            left = (
              await server.service.post(`${tablePath('reports')}/batch-by-filter`, { action: 'delete', filter: [] })
            ).body.processed
        },
      ],
    ]

    describe.each(worlds)('%s', (_, enter) => {
      beforeAll(enter)

      test.each(Object.keys(callers) as CallerName[])(
        '[DB-INC-5, DB-INC-6, DB-REL-3, DB-REL-4] no answer to %s changes',
        async (caller) => {
          for (const [title, send] of probes) {
            const sent = contentOf(await send(callers[caller]))
            expect({ title, ...sent }).toEqual({ title, ...(before.get(keyOf(caller, title)) as typeof sent) })
          }
        },
      )
    })

    test('[DB-INC-5, DB-INC-9] no probe has shown a text of a record that the caller may not read', () => {
      const denied = ['Eve', '@x.test', 'spam', 'blue', 'n1"', 'of t2']
      // A flagged comment is shown to its author.
      for (const [key, content] of before)
        for (const secret of key.startsWith('bob') ? denied : [...denied, 'third'])
          expect((content as { text: string }).text).not.toContain(secret)
    })

    afterAll(() => before.clear())
  },
)
