/** `plinth rules attack`: rules that are open are found, and those that are not are not. */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engines } from '../harness/engines.ts'
import { openCommandLine } from '../harness/processes/command-line.ts'
import { createServer, rootKey } from '../harness/server.ts'

const commandLine = openCommandLine([process.execPath, join(import.meta.dir, '../../src/main.ts'), 'rules'], 'SIGKILL')
const inFolder = (...names: readonly string[]): string => join(commandLine.folder, ...names)

const closed = `
import { defineConfig, exists, field } from 'plinth'
const text = { type: 'string' } as const
const own = (auth) => auth && { ownerId: auth.id }
export default defineConfig({
  databases: {
    shared: {
      tables: {
        teams: { schema: { code: { type: 'string', required: true, unique: true, pattern: '^[A-Z]{3}$' } } },
        posts: {
          schema: { ownerId: text, title: { type: 'string', required: true, min: 3, max: 8 },
            teamId: { type: 'string', references: 'teams', required: true },
            status: { type: 'string', enum: ['draft', 'live'] }, secret: text },
          hidden: ['secret'],
          access: { read: own, insert: own, update: own, delete: own },
        },
        rows: { schema: { org: text }, access: { read: (auth) => auth && { org: auth.custom.org } } },
        members: { schema: { userId: text, teamId: text } },
        docs: { schema: { teamId: text }, access: {
          read: (auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }) } },
      },
    },
    space: { instance: true, access: (auth, id) => auth?.id === id, tables: {
      notes: { access: { read: true, insert: true, update: true, delete: true } } } },
  },
  storage: { buckets: { photos: { access: {
    read: (auth) => auth && { uploadedBy: auth.id },
    write: (auth) => auth && { uploadedBy: auth.id },
    delete: (auth) => auth && { uploadedBy: auth.id } } } } },
  rooms: { game: { access: { join: (auth, id) => auth.id === id } } },
  kv: { cache: {} }, sql: { reports: {} }, vector: { ideas: { dimensions: 2 } },
})`

const open = `
import { defineConfig } from 'plinth'
const text = { type: 'string' } as const
const own = (auth) => auth && { ownerId: auth.id }
export default defineConfig({
  databases: {
    shared: {
      tables: {
        news: { schema: { title: text, live: { type: 'boolean' } }, access: { read: { live: true } } },
        posts: {
          schema: { ownerId: text, title: text },
          access: { read: true, insert: (auth) => auth !== null, update: (auth) => auth !== null, delete: own },
        },
        wiki: { schema: { title: text }, access: { read: true, insert: true, update: true, delete: true } },
        rows: { schema: { org: text }, access: { read: (auth) => auth && { org: auth.custom.org } } },
      },
    },
    space: { instance: true, access: (auth) => auth !== null, tables: { notes: { access: { read: true } } } },
  },
  storage: { buckets: { photos: { access: { read: true, write: (auth) => auth !== null } } } },
  rooms: { game: { access: { join: true, metadata: true } } },
})`.replace('access: { read: { live: true } }', 'access: { read: () => ({ live: true }) }')

const run = (...words: readonly string[]) => commandLine.run(['attack', ...words], {})
const attackFolders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('plinth-attack-'))

interface Reported {
  readonly findings: readonly { readonly name: string; readonly severity: string; readonly only: string | null }[]
  readonly notes: readonly string[]
}

describe('plinth rules attack', () => {
  test('[RULES-ATTACK-1, RULES-ATTACK-2] rules that admit owners and members only are not open, and nothing remains', async () => {
    writeFileSync(inFolder('plinth.config.ts'), closed)
    const before = [readdirSync(inFolder()), attackFolders()]
    const { code, out, error } = await run('--json')
    const { findings, notes } = JSON.parse(out) as Reported
    // Users of one tenant share its rows.
    expect(findings.map(({ name }) => name)).toEqual(['shared.rows:read:otherUser'])
    expect([code, error, notes]).toEqual([1, '', []])
    expect([readdirSync(inFolder()), attackFolders()]).toEqual(before)
  })

  test('[RULES-ATTACK-1, RULES-ATTACK-3] what is open is found with its severity and the rule', async () => {
    writeFileSync(inFolder('plinth.config.ts'), open)
    const { code, out } = await run('--json')
    const { findings } = JSON.parse(out) as Reported
    const found = Object.fromEntries(findings.map(({ name, severity }) => [name, severity]))
    expect([code, found]).toEqual([
      1,
      {
        'shared.wiki:update:anonymous': 'critical',
        'shared.wiki:delete:anonymous': 'critical',
        'shared.posts:update:otherTenant': 'critical',
        'bucket photos:update:otherTenant': 'critical',
        'shared.wiki:create:anonymous': 'high',
        'shared.news:read:anonymous': 'medium',
        'shared.posts:read:anonymous': 'medium',
        'shared.posts:create:otherTenant': 'medium',
        'shared.wiki:read:anonymous': 'medium',
        'space.notes:read:otherTenant': 'medium',
        'bucket photos:read:anonymous': 'medium',
        'room game:read:anonymous': 'medium',
        'shared.rows:read:otherUser': 'low',
        'room game:join:otherTenant': 'low',
      },
    ])
    expect(findings.find(({ name }) => name === 'shared.news:read:anonymous')?.only).toBe('live is true')
    const text = await run()
    expect(text.out).toContain(
      'critical  shared.posts:update:otherTenant\n          a user of another tenant may update shared.posts\n          read: true; update.before: true; update.after: true\n',
    )
    expect(text.out).toEndWith('14 open\n')
  })

  test('[RULES-ATTACK-4] what --allow names is not open', async () => {
    writeFileSync(inFolder('plinth.config.ts'), closed)
    const all = await run('--allow', 'shared.rows:read:otherUser')
    expect([all.code, all.out]).toEqual([0, 'nothing open, 1 allowed\n'])
    expect((await run('--allow', 'shared.rows:*')).code).toBe(0)
    expect((await run('--allow', 'shared.posts:read,shared.rows:update')).code).toBe(1)
    const wrong = await run('--allow', 'shared.rows')
    expect([wrong.code, wrong.error]).toEqual([2, expect.stringContaining('"shared.rows" is not target:operation')])
    // More than the named caller is still open.
    writeFileSync(inFolder('plinth.config.ts'), open)
    const { out } = await run('--allow', 'shared.posts:read:otherUser,shared.wiki:*')
    expect(out).toContain('shared.posts:read:anonymous')
    expect(out).not.toContain('shared.wiki')
  })

  test('[RULES-ATTACK-5] functions are called without being run, and those that do not load are named', async () => {
    writeFileSync(inFolder('plinth.config.ts'), 'export default {}')
    mkdirSync(inFolder('functions'), { recursive: true })
    const index = inFolder('functions/index.ts')
    writeFileSync(
      index,
      `import { functionsFor } from 'plinth/functions'
       const { rpc, http } = functionsFor()
       const run = () => { throw new Error('it has run') }
       export const open = rpc({ caller: 'anyone' }, run)
       export const users = rpc({ caller: 'user' }, run)
       export const inner = rpc({ caller: 'service' }, run)
       export const hook = http.post('/hook', run)`,
    )
    const { out } = await run('--json')
    const { findings, notes } = JSON.parse(out) as Reported
    expect(findings.map(({ name }) => name).sort()).toEqual([
      'function open:call:anonymous',
      'function users:call:otherTenant',
    ])
    expect(notes).toEqual(['function hook: serves HTTP and decides itself, so it is not tried'])
    writeFileSync(index, 'export const broken = (')
    expect((await run()).out).toContain('not tried functions, which do not load')
  })

  test('[RULES-ATTACK-6] with --url a running server explains attempts on its records, and none is changed', async () => {
    writeFileSync(inFolder('plinth.config.ts'), 'export default {}')
    const own = (auth: { id: string } | null) => auth && { ownerId: auth.id }
    const text = { type: 'string' } as const
    const tables = {
      posts: { schema: { ownerId: text }, access: { read: true, update: () => true, delete: own, insert: own } },
      empty: { schema: { ownerId: text }, access: { read: true } },
    }
    const server = createServer({ config: { databases: { shared: { tables } } }, mode: 'release' }, engines[0] as never)
    await server.open()
    try {
      const path = '/api/db/shared/tables/posts'
      await server.service.post(path, { id: 'a', ownerId: 'ada' })
      const before = await server.dump(path)
      const { out, code } = await commandLine.run(['attack', '--json', '--url', server.url], {
        PLINTH_SERVICE_KEY: rootKey,
      })
      const { findings, notes } = JSON.parse(out) as Reported
      expect([code, findings.map(({ name }) => name)]).toEqual([
        1,
        ['shared.posts:update:anonymous', 'shared.posts:read:anonymous'],
      ])
      expect(notes).toContain('shared.empty: it has no record')
      expect(await server.dump(path)).toEqual(before)
    } finally {
      await server.close()
    }
  })
})
