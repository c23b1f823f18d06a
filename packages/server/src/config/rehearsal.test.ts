import { describe, expect, test } from 'bun:test'
import { and, exists, field, not, or, where } from './define.ts'
import { parseConfig } from './validate.ts'

type Auth = { id: string; role: string; custom: Record<string, string[]> }

const rootKey = 'r'.repeat(32)
const parse = (written: object) => parseConfig(written, { mode: 'release', rootKey })

const schema = { title: { type: 'string' }, rank: { type: 'number' }, ownerId: { type: 'string' } }
const members = { schema: { userId: { type: 'string' }, teamId: { type: 'string' } } }
/** A configuration in which only this rule is of interest. */
const table = (read: unknown) => ({
  databases: { shared: { tables: { posts: { schema, access: { read } }, members } } },
})
const bucket = (read: unknown) => ({
  databases: { shared: { tables: { members } } },
  storage: { buckets: { files: { access: { read } } } },
})
const room = (join: unknown) => ({
  databases: { shared: { tables: { members } } },
  rooms: { game: { access: { join } } },
})
const instance = (access: unknown) => ({
  databases: { shared: { tables: { members } }, team: { instance: true, access, tables: { people: { schema } } } },
})

const inTable = 'databases.shared.tables.posts.access.read'
const inBucket = 'storage.buckets.files.access.read'
const inRoom = 'rooms.game.access.join'
const inInstance = 'databases.team.access'

describe('[RULE-18] rules that could never be judged', () => {
  test.each<[written: object, ...mistakes: string[]]>([
    [table(() => ({ titel: 'x' })), `${inTable}: Unknown field "titel"`],
    [table((auth: Auth | null) => auth && { ownreId: auth.id }), `${inTable}: Unknown field "ownreId"`],
    [table((auth: Auth | null) => auth?.role === 'admin' && { nope: 1 }), `${inTable}: Unknown field "nope"`],
    [table((auth: Auth | null) => ({ nope: auth?.custom.team })), `${inTable}: Unknown field "nope" of posts`],
    [
      table(() => or(and({ one: 1 }, where('two', '==', 2)), not({ three: 3 }))),
      `${inTable}: Unknown field "one"`,
      `${inTable}: Unknown field "two"`,
      `${inTable}: Unknown field "three"`,
    ],
    [table(() => ({ rank: 'first' })), `${inTable}: The value for "rank" must be a number`],
    [table(() => ({})), `${inTable}: A rule returned an empty filter; return true to allow every row`],
    [table(() => 'yes'), `${inTable}: A rule must return true, false or a filter`],
    [table(() => Promise.resolve(true)), `${inTable}: must not return a promise`],
    [table(() => exists('people', { userId: 'x' })), `${inTable}: There is no table "people" in "shared"`],
    [table(() => exists('members', { user: 'x' })), `${inTable}: Unknown field "user"`],
    [
      table(() => exists('members', { teamId: field('team') })),
      `${inTable}: exists(…) can only compare declared fields: "teamId", field('team')`,
    ],
    [
      table(() => exists('members', { teamId: field('rank') })),
      `${inTable}: "teamId" and field('rank') have different types`,
    ],
    [bucket(() => ({ owner: 'x' })), `${inBucket}: Unknown field "owner"`],
    [bucket(() => exists('people', {})), `${inBucket}: There is no table "people" in "shared"`],
    [room(() => ({ name: 'x' })), `${inRoom}: Unknown field "name"`],
    [room(() => exists('people', { userId: 'x' })), `${inRoom}: There is no table "people" in "shared"`],
    [instance(() => ({ name: 'x' })), `${inInstance}: Unknown field "name"`],
    [
      instance(() => exists('absent', { userId: 'x' })),
      `${inInstance}: There is no table "absent" in "team" or "shared"`,
    ],
    [
      instance(() => exists('members', exists('people', { title: field('userId') }))),
      `${inInstance}: There is no table "people" in "shared"`,
    ],
    [{ auth: { publicUsers: () => ({ name: 'x' }) } }, 'auth.publicUsers: Unknown field "name"'],
  ])('%#', (written, ...mistakes) => {
    expect(() => parse(written)).toThrow(mistakes.join('\n'))
  })
})

describe('[RULE-18] rules that can', () => {
  test.each<[object]>([
    [table((auth: Auth | null) => ({ ownerId: auth?.custom.missing }))],
    [table((auth: Auth | null) => auth && exists('members', { userId: auth.id, teamId: field('ownerId') }))],
    [
      bucket(
        (auth: Auth | null) => auth && exists('members', { userId: auth.id, teamId: field('customMetadata.team') }),
      ),
    ],
    [bucket(() => exists('members', { userId: field('uploadedBy') }))],
    [room((auth: Auth, id: string) => exists('members', { userId: auth.id, teamId: id }))],
    [room(async () => true)],
    [room(() => Promise.reject(new Error('later')))],
    [instance((auth: Auth | null) => auth && exists('members', { userId: auth.id, teamId: field('id') }))],
    [instance((auth: Auth | null) => auth && exists('people', { ownerId: auth.id }))],
    [instance((_: unknown, id: string) => ({ id }))],
  ])('%#', (written) => {
    expect(parse(written).warnings).toEqual([])
  })
})

test('[RULE-19] a rule that throws is named with its place and the caller, and does not stop the start', () => {
  const { warnings } = parse(table((auth: Auth) => auth.custom.teams?.includes('x') && { ownerId: auth.id }))
  expect(warnings.map((text) => text.split(': ').slice(0, 2).join(': '))).toEqual([
    `${inTable}: fails for a caller without credentials, which denies access`,
  ])
  const claims = parse(table((auth: Auth | null) => auth && auth.custom.teams?.length === 1 && missing(auth)))
  expect(claims.warnings).toEqual([])
  const both = parse(table((auth: Auth | null) => auth && (auth.custom.teams as string[]).includes('x')))
  expect(both.warnings.map((text) => text.split(',')[0])).toEqual([
    `${inTable}: fails for a user without custom claims`,
    `${inTable}: fails for an administrator without custom claims`,
  ])
})

function missing(auth: Auth): never {
  throw new Error(`never called for ${auth.id}`)
}

test('[RULE-18] what depends on a message is not made up', () => {
  const action = (_: Auth, __: string, ___: string, payload: { at: number[] }) => payload.at[0] === 1
  expect(parse({ rooms: { game: { access: { join: true, action } } } }).warnings).toEqual([])
})
