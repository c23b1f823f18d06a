/** Functions that nothing would call. */
import { expect, test } from 'bun:test'
import { parseConfig } from '../../../config/validate.ts'
import { checkManifest } from './checks.ts'

const access = { read: true, insert: true, update: true, delete: true }
const { config } = parseConfig(
  {
    auth: { publicUsers: true },
    databases: { shared: { tables: { posts: { schema: {}, access } } } },
    storage: { buckets: { avatars: { access: { read: true, write: true } } } },
  },
  { mode: 'release', rootKey: 'k'.repeat(32) },
)

const issuesOf = (kind: string, options: object): readonly string[] =>
  checkManifest(
    {
      functions: [{ name: 'hook', kind, location: { file: '/app/index.ts', line: 3 }, ...options }],
      secrets: [],
      files: [],
    },
    { config, secrets: new Map(), folder: '/app' },
  ).issues

test('[FN-BEFORE-11] a function before writes of a table is accepted', () => {
  expect(issuesOf('before', { table: 'shared.posts', on: ['insert'] })).toEqual([])
})

test.each([
  [
    'a table of the server',
    'before',
    { table: 'shared._users_public', on: ['update'] },
    'written by the server itself',
  ],
])(
  '[FN-BEFORE-11] a function for %s, which nothing would call, is refused at the start',
  (_, kind, options, message) => {
    const issues = issuesOf(kind, options)
    expect(issues).toHaveLength(1)
    expect(issues[0]).toStartWith('index.ts:3: hook: ')
    expect(issues[0]).toContain(message)
  },
)

test('[FN-CHANGE-2] a condition on a field that the table does not have is refused once, by its name', () => {
  expect(issuesOf('onChange', { table: 'shared.posts', on: ['insert'], where: { color: 'red' } })).toEqual([
    'index.ts:3: hook: where: Unknown field "color"',
  ])
})

test.each(['beforeSignUp', 'claims'])('[FN-AUTH-14] a second function of kind %s is refused', (kind) => {
  const declare = (name: string, line: number) => ({ name, kind, location: { file: '/app/index.ts', line } })
  const issues = (...functions: readonly ReturnType<typeof declare>[]) =>
    checkManifest({ functions, secrets: [], files: [] }, { config, secrets: new Map(), folder: '/app' }).issues
  expect(issues(declare('first', 3))).toEqual([])
  expect(issues(declare('first', 3), declare('second', 9))).toEqual([
    `index.ts:9: second: auth.${kind} is declared as "first" already`,
  ])
})

test('[FN-HOOK-1] a webhook that could never be delivered is refused without quoting its secret', () => {
  const secret = `whsec_${'A'.repeat(32)}`
  const webhook = { table: 'shared.posts', url: 'https://example.com/hook', secret }
  expect(issuesOf('webhook', webhook)).toEqual([])
  expect(issuesOf('webhook', { ...webhook, url: 'example.com' })).toEqual([expect.stringContaining('must be a URL')])
  const [issue = ''] = issuesOf('webhook', { ...webhook, secret: 'not-a-secret-of-webhooks' })
  expect(issue).toContain('secret: ')
  expect(issue).not.toContain('not-a-secret')
})

const declarations = [
  ['before', { on: ['insert'] }],
  ['onChange', {}],
  ['webhook', { url: 'https://example.com/hook', secret: `whsec_${'A'.repeat(32)}` }],
] as const

test.each(declarations)(
  '[FN-FILE-10] %s of a bucket is accepted, and of an unknown bucket refused',
  (kind, options) => {
    expect(issuesOf(kind, { ...options, table: 'storage.avatars' })).toEqual([])
    expect(issuesOf(kind, { ...options, table: 'storage.avatar' })).toEqual([
      'index.ts:3: hook: there is no bucket "avatar". Did you mean "avatars"?',
    ])
  },
)

test('[FN-FILE-10] `where` and `fields` of a bucket name fields of files', () => {
  const where = { contentType: 'image/png', 'customMetadata.kind': 'avatar' }
  expect(issuesOf('onChange', { table: 'storage.avatars', where })).toEqual([])
  for (const [field, problem] of [
    ['createdAt', 'createdAt'],
    ['customMetadata', 'customMetadata'],
  ] as const)
    expect(issuesOf('onChange', { table: 'storage.avatars', where: { [field]: 'x' } })).toEqual([
      expect.stringContaining(problem),
    ])
  const [, , [, webhook]] = declarations
  expect(issuesOf('webhook', { ...webhook, table: 'storage.avatars', fields: ['key', 'customMetadata'] })).toEqual([])
  expect(issuesOf('webhook', { ...webhook, table: 'storage.avatars', fields: ['name'] })).toEqual([
    'index.ts:3: hook: fields: there is no field "name" in storage.avatars',
  ])
})
