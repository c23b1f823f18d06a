/**
 * Thirty questions about rules with known answers: the verdict, the clause that decides, and the same answer of the
 * endpoint itself.
 */
import { beforeAll, expect, test } from 'bun:test'
import { and, exists, field, not, or, where } from '../../../src/access/filter.ts'
import type { Answer, Client } from '../../harness/client.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import type { UserClaims } from '../../harness/users/tokens.ts'

type Auth = { id: string; role: string; custom: Record<string, unknown> } | null

const mine = (auth: Auth) => auth && { ownerId: auth.id }
const text = { type: 'string' } as const

const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: text, ownerId: text, status: text, likes: { type: 'number' }, secret: text },
          hidden: ['secret'],
          access: {
            read: (auth: Auth) => (auth ? or({ status: 'live' }, { ownerId: auth.id }) : { status: 'live' }),
            insert: (auth: Auth) => auth && and({ ownerId: auth.id }, { status: 'draft' }),
            update: {
              before: (auth: Auth) => auth && and({ ownerId: auth.id }, not({ status: 'locked' })),
              after: (auth: Auth) => auth && and({ ownerId: auth.id }, where('status', 'in', ['draft', 'live'])),
            },
            delete: (auth: Auth) => auth?.role === 'moderator' || mine(auth),
          },
        },
        members: { schema: { teamId: text, userId: text, role: text }, access: {} },
        docs: {
          schema: { title: text, teamId: text },
          access: {
            read: (auth: Auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }),
            update: (auth: Auth) =>
              auth && exists('members', { userId: auth.id, teamId: field('teamId'), role: 'editor' }),
            delete: (auth: Auth) => auth && not(exists('members', { teamId: field('teamId') })),
          },
        },
        vault: {
          schema: { code: text, level: { type: 'number' } },
          access: {
            read: (auth: Auth) => auth && where('level', '<=', Number(auth.custom.level ?? -1)),
            insert: (auth: Auth) => auth && { code: auth.custom.code as string },
          },
        },
        plain: { schema: { title: text } },
      },
    },
    team: {
      instance: true,
      access: (auth: Auth, id: string) =>
        auth !== null && (auth.custom.team === id || exists('guests', { user: auth.id })),
      tables: {
        guests: { schema: { user: text }, access: {} },
        notes: { schema: { title: text }, access: { read: true, insert: true } },
      },
    },
  },
}

const rows = {
  posts: [
    { id: 'live', title: 'Live', ownerId: 'ada', status: 'live', likes: 1, secret: 's1' },
    { id: 'draft', title: 'Draft', ownerId: 'ada', status: 'draft', likes: 0, secret: 's2' },
    { id: 'locked', title: 'Locked', ownerId: 'ada', status: 'locked', secret: 's3' },
    { id: 'orphan', title: 'Without an owner', status: 'draft' },
  ],
  members: [
    { id: 'm1', teamId: 'red', userId: 'ada', role: 'editor' },
    { id: 'm2', teamId: 'red', userId: 'bob', role: 'reader' },
  ],
  docs: [
    { id: 'red', title: 'Red', teamId: 'red' },
    { id: 'blue', title: 'Blue', teamId: 'blue' },
  ],
  vault: [{ id: 'v', code: 'x', level: 3 }],
  plain: [{ id: 'p', title: 'Plain' }],
} as const

interface Asked {
  /** `anonymous`, a user id, or the claims of a user. */
  readonly as: string | (UserClaims & { readonly id: string })
  readonly operation: 'list' | 'get' | 'create' | 'update' | 'delete'
  readonly table: string
  readonly instanceId?: string
  readonly id?: string
  readonly row?: Readonly<Record<string, unknown>>
}

type Expected = readonly [verdict: number, path: string, text: string, result: boolean | null]

const moderator = { id: 'mod', role: 'moderator' } as const
const insider = (level: number) => ({ id: 'eve', custom: { level } })

/** The caller, the operation, the verdict, and the clause that decides it. */
const questions: readonly (readonly [Asked, Expected])[] = [
  [{ as: 'anonymous', operation: 'list', table: 'posts' }, [200, 'read', 'status == "live"', null]],
  [{ as: 'anonymous', operation: 'get', table: 'posts', id: 'live' }, [200, 'read', 'status == "live"', true]],
  [{ as: 'anonymous', operation: 'get', table: 'posts', id: 'draft' }, [404, 'read', 'status == "live"', false]],
  [{ as: 'ada', operation: 'get', table: 'posts', id: 'draft' }, [200, 'read.or[1]', 'ownerId == "ada"', true]],
  [{ as: 'bob', operation: 'get', table: 'posts', id: 'draft' }, [404, 'read.or[1]', 'ownerId == "bob"', false]],
  [{ as: 'bob', operation: 'get', table: 'posts', id: 'orphan' }, [404, 'read.or[1]', 'ownerId == "bob"', null]],
  [{ as: 'bob', operation: 'get', table: 'posts', id: 'missing' }, [404, 'read.or[1]', 'ownerId == "bob"', null]],
  [
    { as: 'anonymous', operation: 'create', table: 'posts', row: { title: 'New', status: 'draft' } },
    [401, 'insert', 'false', false],
  ],
  [
    { as: 'ada', operation: 'create', table: 'posts', row: { ownerId: 'ada', status: 'draft' } },
    [200, 'insert', 'ownerId == "ada" and status == "draft"', true],
  ],
  [
    { as: 'ada', operation: 'create', table: 'posts', row: { ownerId: 'ada', status: 'live' } },
    [403, 'insert.and[1]', 'status == "draft"', false],
  ],
  [
    { as: 'ada', operation: 'create', table: 'posts', row: { status: 'draft' } },
    [403, 'insert.and[0]', 'ownerId == "ada"', null],
  ],
  [
    { as: 'ada', operation: 'update', table: 'posts', id: 'draft', row: { title: 'Other' } },
    [200, 'update.after.and[1]', 'status in ["draft", "live"]', true],
  ],
  [
    { as: 'ada', operation: 'update', table: 'posts', id: 'draft', row: { ownerId: 'bob' } },
    [403, 'update.after.and[0]', 'ownerId == "ada"', false],
  ],
  [
    { as: 'ada', operation: 'update', table: 'posts', id: 'draft', row: { status: 'locked' } },
    [403, 'update.after.and[1]', 'status in ["draft", "live"]', false],
  ],
  [
    { as: 'ada', operation: 'update', table: 'posts', id: 'locked', row: { title: 'Other' } },
    [403, 'update.before.and[1]', 'not (status == "locked")', false],
  ],
  [
    { as: 'bob', operation: 'update', table: 'posts', id: 'live', row: { title: 'Other' } },
    [403, 'update.before.and[0]', 'ownerId == "bob"', false],
  ],
  [
    { as: 'bob', operation: 'update', table: 'posts', id: 'draft', row: { title: 'Other' } },
    [404, 'read', 'status == "live" or ownerId == "bob"', false],
  ],
  [
    { as: 'anonymous', operation: 'update', table: 'posts', id: 'live', row: { title: 'Other' } },
    [401, 'update.before', 'false', false],
  ],
  [{ as: 'bob', operation: 'delete', table: 'posts', id: 'live' }, [403, 'delete', 'ownerId == "bob"', false]],
  [{ as: moderator, operation: 'delete', table: 'posts', id: 'live' }, [200, 'delete', 'true', true]],
  [{ as: moderator, operation: 'delete', table: 'posts', id: 'draft' }, [404, 'read.or[0]', 'status == "live"', false]],
  [
    { as: 'ada', operation: 'get', table: 'docs', id: 'red' },
    [200, 'read', 'exists(members, userId == "ada" and teamId == row.teamId)', true],
  ],
  [
    { as: 'ada', operation: 'get', table: 'docs', id: 'blue' },
    [404, 'read', 'exists(members, userId == "ada" and teamId == row.teamId)', false],
  ],
  [
    { as: 'bob', operation: 'update', table: 'docs', id: 'red', row: { title: 'Other' } },
    [403, 'update.before', 'exists(members, userId == "bob" and teamId == row.teamId and role == "editor")', false],
  ],
  [
    { as: 'ada', operation: 'update', table: 'docs', id: 'red', row: { teamId: 'blue' } },
    [403, 'update.after', 'exists(members, userId == "ada" and teamId == row.teamId and role == "editor")', false],
  ],
  [
    { as: 'bob', operation: 'delete', table: 'docs', id: 'red' },
    [403, 'delete.not', 'exists(members, teamId == row.teamId)', true],
  ],
  [{ as: insider(3), operation: 'get', table: 'vault', id: 'v' }, [200, 'read', 'level <= 3', true]],
  [{ as: insider(2), operation: 'get', table: 'vault', id: 'v' }, [404, 'read', 'level <= 2', false]],
  [
    { as: insider(9), operation: 'create', table: 'vault', row: { code: 'x' } },
    [403, 'insert', 'The rule failed: The rule compares "code" with undefined', false],
  ],
  [{ as: 'ada', operation: 'get', table: 'plain', id: 'p' }, [403, 'read', 'false', false]],
  [{ as: 'anonymous', operation: 'list', table: 'plain' }, [401, 'read', 'false', false]],
  [
    { as: { id: 'ada', custom: { team: 'red' } }, operation: 'list', table: 'notes', instanceId: 'red' },
    [200, 'instance', 'true', true],
  ],
  [
    { as: { id: 'ada', custom: { team: 'red' } }, operation: 'list', table: 'notes', instanceId: 'blue' },
    [403, 'instance', 'exists(guests, user == "ada")', false],
  ],
  [{ as: 'anonymous', operation: 'list', table: 'notes', instanceId: 'blue' }, [401, 'instance', 'false', false]],
]

const namespaceOf = ({ instanceId }: Asked): string => (instanceId === undefined ? 'shared' : 'team')

const callerOf = ({ as }: Asked) =>
  as === 'anonymous'
    ? { kind: 'anonymous' }
    : { kind: 'claims', auth: typeof as === 'string' ? { id: as } : { id: as.id, role: as.role, custom: as.custom } }

const clientOf = (server: TestServer, { as }: Asked): Client => (as === 'anonymous' ? server.anonymous : server.as(as))

/** The request of the question, for the endpoint itself. */
function send(server: TestServer, asked: Asked): Promise<Answer> {
  const { operation, table, instanceId, id, row } = asked
  const client = clientOf(server, asked)
  const path = `/api/db/${namespaceOf(asked)}${instanceId === undefined ? '' : `/${instanceId}`}/tables/${table}`
  if (operation === 'list') return client.get(path)
  if (operation === 'get') return client.get(`${path}/${id}`)
  if (operation === 'create') return client.post(path, row)
  return operation === 'update' ? client.patch(`${path}/${id}`, row) : client.delete(`${path}/${id}`)
}

const explain = (server: TestServer, { as: _, ...asked }: Asked, caller: object): Promise<Answer> =>
  server.service.post('/api/rules/explain', { namespace: namespaceOf({ as: '', ...asked }), ...asked, caller })

describeServer('questions about rules', { config }, (server) => {
  const path = (table: string): string => `/api/db/shared/tables/${table}`

  const tables = Object.keys(rows).map(path)

  async function reset(): Promise<void> {
    for (const [table, items] of Object.entries(rows)) {
      await server.service.post(`${path(table)}/batch-by-filter`, { action: 'delete' })
      expect((await server.service.post(`${path(table)}/batch`, { inserts: items })).status).toBe(200)
    }
  }
  beforeAll(reset)

  for (const [asked, [verdict, at, text, result]] of questions) {
    const { as, operation, table, id = '', row } = asked
    const who = typeof as === 'string' ? as : JSON.stringify(as)
    const what = [operation, table, id, row ? JSON.stringify(row) : ''].filter(Boolean).join(' ')
    test(`[RULES-EXPLAIN-1, RULES-EXPLAIN-2] ${who}: ${what} is ${verdict} because of ${at}`, async () => {
      const before = await server.dump(...tables)
      const explained = await explain(server, asked, callerOf(asked))
      expect(explained.status).toBe(200)
      expect(explained.body.verdict).toBe(verdict)
      expect(explained.body.allowed).toBe(verdict === 200)
      const clause = explained.body.clauses.find((one: { path: string }) => one.path === at)
      expect({ text: clause?.text, result: clause?.result }).toEqual({ text, result })
      // Asking has changed nothing.
      expect(await server.dump(...tables)).toEqual(before)
      const answer = await send(server, asked)
      expect(answer.status === 201 ? 200 : answer.status).toBe(verdict)
      if (verdict !== 200) expect(explained.body.reason).toBe(answer.body.message)
      else if (operation !== 'list' && operation !== 'get') await reset()
    })
  }
})
