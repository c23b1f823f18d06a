/** The matrix of access, for rules whose cells are known. */
import { beforeAll, expect, test } from 'bun:test'
import { and, exists, field, not, or, where } from '../../../src/access/filter.ts'
import { brokenLater } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

type Auth = { id: string; role: string; email: string | null; custom: Record<string, unknown> } | null

const text = { type: 'string' } as const
const table = (read: unknown) => ({
  schema: { ownerId: text, orgId: text, email: text, level: { type: 'number' }, members: { type: 'json' } },
  access: { read },
})

/** Read rules, and the cells of anonymous, user, owner, other user and other tenant: a text is a condition. */
const rules: Readonly<Record<string, readonly [rule: unknown, cells: readonly (string | boolean)[]]>> = {
  open: [true, [true, true, true, true, true]],
  closed: [undefined, [false, false, false, false, false]],
  users: [(auth: Auth) => auth !== null, [false, true, true, true, true]],
  owned: [(auth: Auth) => auth && { ownerId: auth.id }, [false, 'ownerId == auth.id', true, false, false]],
  published: [
    (auth: Auth) => (auth ? or({ level: 1 }, { ownerId: auth.id }) : { level: 1 }),
    ['level == 1', 'level == 1 or ownerId == auth.id', true, 'level == 1', 'level == 1'],
  ],
  notmine: [
    (auth: Auth) => auth && where('ownerId', '!=', auth.id),
    [false, 'ownerId != auth.id', false, 'ownerId != null', 'ownerId != null'],
  ],
  negated: [(auth: Auth) => auth && not({ ownerId: auth.id }), [false, 'not (ownerId == auth.id)', false, true, true]],
  listed: [
    (auth: Auth) => auth && where('members', 'contains', auth.id),
    [false, 'members contains auth.id', true, false, false],
  ],
  addressed: [(auth: Auth) => auth && { email: auth.email }, [false, 'email == auth.email', true, false, false]],
  tenant: [
    (auth: Auth) => auth && { orgId: auth.custom.org as string },
    [false, 'orgId == auth.custom.org', 'orgId == auth.custom.org', 'orgId == auth.custom.org', false],
  ],
  tenants: [
    (auth: Auth) => auth && where('orgId', 'in', auth.custom.orgs as string[]),
    [false, 'orgId in [auth.custom.orgs]', 'orgId in [auth.custom.orgs]', 'orgId in [auth.custom.orgs]', false],
  ],
  admins: [
    (auth: Auth) => auth?.custom.admin === true || (auth !== null && { ownerId: auth.id }),
    [false, 'ownerId == auth.id', true, false, false],
  ],
  flagged: [(auth: Auth) => Boolean(auth?.custom.staff), [false, false, false, false, false]],
  leveled: [
    (auth: Auth) => auth && where('level', '<=', auth.custom.level as number),
    [false, ...Array(4).fill("the caller's custom.level")],
  ],
  joined: [
    (auth: Auth) => auth && exists('owned', { ownerId: auth.id, orgId: field('orgId') }),
    [
      false,
      'exists(owned, ownerId == auth.id and orgId == row.orgId)',
      'exists(owned, ownerId == auth.id and orgId == row.orgId)',
      false,
      false,
    ],
  ],
  unblocked: [
    (auth: Auth) => auth && and({ level: 1 }, not(exists('owned', { ownerId: auth.id }))),
    [
      false,
      'level == 1 and not (exists(owned, ownerId == auth.id))',
      'level == 1 and not (exists(owned, ownerId == auth.id))',
      'level == 1',
      'level == 1',
    ],
  ],
  none: [(auth: Auth) => auth && where('id', 'in', []), [false, false, false, false, false]],
  broken: [
    brokenLater(() => {
      throw new Error('no such thing')
    }),
    [false, false, false, false, false],
  ],
}

const notes = { notes: { access: { read: true } } }

const config = {
  databases: {
    shared: {
      tables: {
        ...Object.fromEntries(Object.entries(rules).map(([name, [rule]]) => [name, table(rule)])),
        flow: {
          schema: { ownerId: text, status: text },
          access: {
            read: true,
            insert: (auth: Auth) => auth && { ownerId: auth.id },
            update: {
              before: (auth: Auth) => auth && { ownerId: auth.id },
              after: () => where('status', '!=', 'locked'),
            },
            delete: (auth: Auth) => auth?.role === 'admin',
          },
        },
      },
    },
    own: { instance: true, access: (auth: Auth, id: string) => auth?.id === id, tables: notes },
    team: { instance: true, access: (auth: Auth, id: string) => auth?.custom.team === id, tables: notes },
    trips: {
      instance: true,
      access: (auth: Auth, id: string) => auth !== null && [auth.custom.trips].flat().includes(id),
      tables: notes,
    },
    club: {
      instance: true,
      access: (auth: Auth, id: string) => auth && exists('flow', { status: id, ownerId: auth.id }),
      tables: notes,
    },
    world: { instance: true, access: () => true, tables: notes },
    slow: { instance: true, access: async () => true, tables: notes },
    sealed: { instance: true, tables: notes },
  },
  storage: { buckets: { photos: { access: { read: true, write: (auth: Auth) => auth && { uploadedBy: auth.id } } } } },
}

const kinds = ['anonymous', 'user', 'owner', 'otherUser', 'otherTenant'] as const

interface Cell {
  readonly access: string
  readonly condition: string | null
}

interface Shown {
  readonly name: string
  readonly namespace: string | null
  readonly hasInstances: boolean
  readonly operations: Record<string, Record<string, Cell>>
  readonly reads: readonly string[]
  readonly failures: readonly string[]
}

const simple = ({ access, condition }: Cell): string | boolean =>
  access === 'depends' ? (condition as string) : access === 'always'

describeServer('the matrix of access', { config }, (server) => {
  let tables: readonly Shown[] = []
  beforeAll(async () => {
    const { status, body } = await server.service.get('/api/rules/matrix')
    expect(status).toBe(200)
    tables = body.tables
  })
  const find = (namespace: string | null, name: string): Shown =>
    tables.find((one) => one.namespace === namespace && one.name === name) as Shown
  const cells = (namespace: string | null, name: string, operation: string) =>
    kinds.map((kind) => simple(find(namespace, name).operations[operation]?.[kind] as Cell))

  for (const [name, [, expected]] of Object.entries(rules))
    test(`[RULES-MATRIX-1, RULES-MATRIX-2] reading by the rule "${name}"`, () => {
      expect(cells('shared', name, 'read')).toEqual([...expected])
    })

  test('[RULES-MATRIX-1] an update needs the rules of a read, of the record before and of the one after', () => {
    const status = 'update.after: status != "locked"'
    expect(cells('shared', 'flow', 'create')).toEqual([false, 'ownerId == auth.id', true, false, false])
    expect(cells('shared', 'flow', 'update')).toEqual([
      false,
      `update.before: ownerId == auth.id; ${status}`,
      'status != "locked"',
      false,
      false,
    ])
    expect(cells('shared', 'flow', 'delete')).toEqual([false, false, false, false, false])
    expect(find('shared', 'flow').reads).toEqual(['role'])
    expect(find('shared', 'flow').hasInstances).toBe(false)
  })

  const admitted = 'the instance admits the caller'
  const entries: readonly (readonly [string, readonly (string | boolean)[]])[] = [
    ['own', [false, admitted, true, true, false]],
    ['team', [false, admitted, true, true, false]],
    ['trips', [false, admitted, true, true, false]],
    ['club', [false, 'exists(flow, status == instance and ownerId == auth.id)', true, true, false]],
    ['world', [true, true, true, true, true]],
    ['slow', ['an asynchronous rule', 'an asynchronous rule', true, true, 'an asynchronous rule']],
    ['sealed', [false, false, false, false, false]],
  ]
  for (const [namespace, expected] of entries)
    test(`[RULES-MATRIX-3] the rule of the dynamic namespace "${namespace}" comes first`, () => {
      expect(cells(namespace, 'notes', 'read')).toEqual([...expected])
      expect(find(namespace, 'notes').hasInstances).toBe(true)
    })

  test('[RULES-MATRIX-1] buckets are part of it', () => {
    expect(cells(null, 'photos', 'read')).toEqual([true, true, true, true, true])
    expect(cells(null, 'photos', 'update')).toEqual([false, 'uploadedBy == auth.id', true, false, false])
  })

  test('[RULES-MATRIX-2] properties of the caller that rules read are named, and rules that fail', () => {
    expect(find('shared', 'admins').reads).toEqual(['custom.admin'])
    expect(find('shared', 'tenant').reads).toEqual(['custom.org'])
    expect(find('shared', 'broken').failures).toEqual(['read: no such thing'])
    expect(find('shared', 'owned').failures).toEqual([])
  })
})
