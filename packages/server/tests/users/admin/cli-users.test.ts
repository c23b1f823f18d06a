/** `plinth users` and `plinth keys`, with and without a running server, and the link for the first administrator. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findMistakes } from '../../../src/config/validate.ts'
import { createClient } from '../../harness/client.ts'
import { type Storage, sharedEngine } from '../../harness/engines.ts'
import { type Env, environment, openCommandLine } from '../../harness/processes/command-line.ts'
import { startServer } from '../../harness/server.ts'

const main = join(import.meta.dir, '../../../src/main.ts')
const password = 'a good password'

const commandLine = openCommandLine([process.execPath, main], 'SIGKILL')
const { spawn, run } = commandLine
beforeEach(() =>
  writeFileSync(
    join(commandLine.folder, 'plinth.config.ts'),
    `import { defineConfig } from 'plinth'
     export default defineConfig({ databases: { shared: { tables: {} } } })`,
  ),
)

/** The lines that a command prints; asserts that it succeeds. */
async function lines(args: readonly string[], env?: Env): Promise<string[]> {
  const { out, error, code } = await run(args, env)
  expect({ error, code }).toEqual({ error: '', code: 0 })
  return out.split('\n').slice(0, -1)
}

/** A server that is ready; `printed` is its output so far. */
async function serve(command: 'dev' | 'start', env?: Env) {
  const child = spawn([command, '--port', '0', '--host', '127.0.0.1', '--log-level', 'error'], env)
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  let printed = ''
  const isReady = () => (command === 'dev' ? printed.includes('First things to try:') : printed.includes('\n'))
  while (!isReady()) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`ended early: ${printed}${await new Response(child.stderr).text()}`)
    printed += decoder.decode(value, { stream: true })
  }
  const url = /^Plinth is ready at (\S+)$/m.exec(printed)?.[1] ?? ''
  return { child, url, printed, client: createClient(() => url) }
}

const create = (email: string, ...more: string[]) =>
  lines(['users', 'create', '--email', email, '--password', password, ...more])
const idOf = (line: string | undefined): string => line?.split('  ')[0] ?? ''

describe('users', () => {
  test('are created in a new data folder and can sign in once a server starts', async () => {
    const [line = ''] = await create('Admin@Example.com', '--role', 'admin', '--name', 'Root')
    expect(line).toMatch(/^[\w-]{36} {2}admin@example\.com {2}admin {2}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const [second = ''] = await create('second@example.com')
    expect(await lines(['users', 'list'])).toEqual([second, line])
    const { client, child } = await serve('start')
    const { status, body } = await client.post('/api/auth/signin', { email: 'admin@example.com', password })
    expect(status).toBe(200)
    expect(body.user).toMatchObject({ id: idOf(line), role: 'admin' })
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(existsSync(join(commandLine.folder, 'data/address'))).toBe(false)
    expect((await lines(['users', 'list'])).length).toBe(2)
  })

  test('[DASH-23] get and lose dashboard roles from a shell, and the audit log is verified there', async () => {
    const [line] = await create('ann@example.com')
    expect(await lines(['users', 'set-dashboard-role', 'ann@example.com', 'owner'])).toEqual([
      'ann@example.com is owner in the dashboard.',
    ])
    await create('bob@example.com')
    await lines(['users', 'set-dashboard-role', 'bob@example.com', 'viewer'])
    expect(await lines(['users', 'set-dashboard-role', 'bob@example.com', 'none'])).toEqual([
      'bob@example.com can no longer open the dashboard.',
    ])
    for (const [args, message] of [
      [['set-dashboard-role', 'ann@example.com'], 'needs a role'],
      [['set-dashboard-role', 'ann@example.com', 'admin'], 'must be null or one of owner, editor, support, viewer'],
      [['set-dashboard-role', 'ann@example.com', 'none'], 'The last owner must stay one'],
      [['disable', 'ann@example.com', 'owner'], 'does not take "owner"'],
    ] as const) {
      const { error, code } = await run(['users', ...args])
      expect(error).toContain(message)
      expect(code).not.toBe(0)
    }
    const [verified = ''] = await lines(['audit', 'verify'])
    expect(verified).toMatch(/^5 entries fit\. Newest hash: [\da-f]{64}$/)
    const hash = verified.slice(-64)
    const { client } = await serve('start')
    expect((await client.post('/dashboard/api/session', {}, {})).status).toBe(403)
    await create('eve@example.com')
    await lines(['users', 'set-dashboard-role', 'eve@example.com', 'owner'])
    await lines(['users', 'delete', idOf(line)])
    expect(await lines(['audit', 'verify', '--hash', hash])).toEqual([
      expect.stringMatching(/^8 entries fit\. Newest hash: [\da-f]{64}$/),
    ])
    const { error, code } = await run(['audit', 'verify', '--hash', '0'.repeat(64)])
    expect({ error, code }).toEqual({ error: 'The given hash is not in the chain.\n', code: 1 })
  })

  test('[DASH-12] the last owner loses access only with --last-owner, and only without a server that runs', async () => {
    await create('ann@example.com')
    await lines(['users', 'set-dashboard-role', 'ann@example.com', 'owner'])
    const actions = [
      ['set-dashboard-role', 'ann@example.com', 'none'],
      ['disable', 'ann@example.com'],
      ['delete', 'ann@example.com'],
    ]
    for (const action of actions) {
      const { error, code } = await run(['users', ...action])
      expect({ error, code }).toEqual({ error: expect.stringContaining('The last owner must stay one'), code: 1 })
    }
    const { error } = await run(['users', 'enable', 'ann@example.com', '--last-owner'])
    expect(error).toContain('does not take --last-owner')
    const { child } = await serve('start')
    for (const action of actions) {
      const refused = await run(['users', ...action, '--last-owner'])
      expect({ error: refused.error, code: refused.code }).toEqual({
        error: expect.stringContaining('Stop the server first'),
        code: 1,
      })
    }
    child.kill('SIGTERM')
    await child.exited
    expect(await lines(['users', 'list'])).toEqual([expect.not.stringContaining('disabled')])
    await lines(['users', 'disable', 'ann@example.com', '--last-owner'])
    await lines(['users', 'enable', 'ann@example.com'])
    await lines(['users', 'set-dashboard-role', 'ann@example.com', 'none', '--last-owner'])
    await lines(['users', 'set-dashboard-role', 'ann@example.com', 'owner'])
    await lines(['users', 'delete', 'ann@example.com', '--last-owner'])
    expect(await lines(['users', 'list'])).toEqual([])
  })

  test('are changed through the server that has the data folder', async () => {
    const { client } = await serve('start')
    const [line] = await create('ann@example.com')
    const id = idOf(line)
    const signIn = () => client.post('/api/auth/signin', { email: 'ann@example.com', password })
    const me = async (accessToken: string) =>
      (await client.get('/api/auth/me', { authorization: `Bearer ${accessToken}` })).status
    const first = (await signIn()).body.accessToken
    expect(await me(first)).toBe(200)

    expect(await lines(['users', 'revoke', 'ANN@example.com'])).toEqual(['ANN@example.com is signed out everywhere.'])
    expect(await me(first)).toBe(401)
    await lines(['users', 'disable', id])
    expect((await signIn()).status).toBe(403)
    expect(await lines(['users', 'list'])).toEqual([`${line}  disabled`])
    await lines(['users', 'enable', 'ann@example.com'])
    expect((await signIn()).status).toBe(200)
    await lines(['users', 'delete', 'ann@example.com'])
    expect((await signIn()).status).toBe(401)
    expect(await lines(['users', 'list'])).toEqual([])
  })

  test('are updated: address, verification, name, role and password', async () => {
    const { client } = await serve('start')
    const signIn = (email: string, secret: string) => client.post('/api/auth/signin', { email, password: secret })
    await create('ann@example.com', '--unverified')
    expect((await signIn('ann@example.com', password)).body.user.emailVerified).toBe(false)
    await lines(['users', 'update', 'ann@example.com', '--verified', '--name', 'Ann', '--role', 'editor'])
    expect((await signIn('ann@example.com', password)).body.user).toMatchObject({
      emailVerified: true,
      displayName: 'Ann',
      role: 'editor',
    })
    const [line] = await lines(['users', 'update', 'ann@example.com', '--email', 'Lee@example.com', '--unverified'])
    expect(line).toContain('  lee@example.com  editor  ')
    expect((await signIn('lee@example.com', password)).body.user.emailVerified).toBe(false)
    expect(await lines(['users', 'password', 'lee@example.com', '--password', 'another password'])).toEqual([
      'lee@example.com has a new password and is signed out everywhere.',
    ])
    expect((await signIn('lee@example.com', password)).status).toBe(401)
    expect((await signIn('lee@example.com', 'another password')).status).toBe(200)
  })

  test('are listed from the data folder of a killed server', async () => {
    const { child } = await serve('start')
    await create('ann@example.com')
    child.kill('SIGKILL')
    await child.exited
    expect(existsSync(join(commandLine.folder, 'data/address'))).toBe(true)
    expect((await lines(['users', 'list'])).length).toBe(1)
  })

  test('a command with another service key than the server fails with an error', async () => {
    await serve('start', { PLINTH_SERVICE_KEY: 'a-key-of-the-environment' })
    const { out, error, code } = await run(['users', 'list'])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(error).toMatch(/^Invalid service key\. Give the key of the server at http\S+ as PLINTH_SERVICE_KEY\.\n$/)
  })

  test('a command fails with an error if the process that has the data folder cannot be reached', async () => {
    const server = await startServer({ config: { databases: { shared: { tables: {} } } } })
    const list = () => run(['users', 'list', '--data', server.dataFolder])
    try {
      const withoutAddress = await list()
      await writeFile(join(server.dataFolder, 'address'), 'http://127.0.0.1:1\n')
      const withWrongAddress = await list()
      const advice = 'Try again once it is ready, or stop it.\n'
      expect(withoutAddress).toEqual({
        out: '',
        error: `Another process has this data folder and has not published its address. ${advice}`,
        code: 1,
      })
      expect(withWrongAddress).toEqual({
        out: '',
        error: `The server at http://127.0.0.1:1, which has this data folder, does not answer. ${advice}`,
        code: 1,
      })
    } finally {
      await server.close()
    }
  })

  test('a command prints the error of the server', async () => {
    await create('ann@example.com')
    const refused = async (...args: string[]) => {
      const { out, error, code } = await run(['users', ...args])
      expect({ out, code }).toEqual({ out: '', code: 1 })
      expect(error).not.toContain('.ts:')
      return error
    }
    expect(await refused('disable', 'unknown@example.com')).toBe('User not found\n')
    expect(await refused('revoke', 'unknown')).toBe('User not found\n')
    const again = ['create', '--email', 'ANN@example.com', '--password', password]
    expect(await refused(...again)).toBe('A user with this email address exists\n')
    expect(await refused('create', '--email', 'b@example.com', '--password', 'short')).toStartWith('password: ')
    expect(await refused('create', '--email', 'malformed', '--password', password)).toStartWith('email: ')
    expect((await lines(['users', 'list'])).length).toBe(1)
  })

  test.each([
    [['users']],
    [['users', 'lits']],
    [['users', 'constructor']],
    [['users', 'list', 'ann']],
    [['users', 'disable']],
    [['users', 'disable', 'ann', '--role', 'admin']],
    [['users', 'create']],
    [['users', 'create', '--email', 'a@example.com']],
    [['keys']],
    [['keys', 'delete']],
  ])('%j is a usage error', async (args) => {
    const { out, error, code } = await run(args)
    expect({ out, code }).toEqual({ out: '', code: 2 })
    expect(error).toEndWith('See `plinth help`.\n')
    expect(existsSync(join(commandLine.folder, 'data/databases'))).toBe(false)
  })

  test.skipIf(process.platform === 'win32')('the password is prompted for in a terminal and not echoed', async () => {
    let shown = ''
    const typed = [`${password}\r`, `${password}\r`]
    await using child = Bun.spawn([process.execPath, main, 'users', 'create', '--email', 'ann@example.com'], {
      cwd: commandLine.folder,
      env: environment,
      terminal: {
        data(terminal, bytes) {
          const before = shown
          shown += new TextDecoder().decode(bytes)
          for (const question of ['Password: ', 'Repeat password: '])
            if (!before.includes(question) && shown.includes(question)) terminal.write(typed.shift() ?? '')
        },
      },
    })
    expect(await child.exited).toBe(0)
    expect(shown).toContain('Repeat password: ')
    expect(shown).not.toContain(password)
    const { client } = await serve('start')
    const { status } = await client.post('/api/auth/signin', { email: 'ann@example.com', password })
    expect(status).toBe(200)
  })
})

describe('keys', () => {
  const kids = (printed: string[]): string[] => printed.map((line) => line.split('  ')[0] ?? '')

  test('are listed and rotated with and without a running server', async () => {
    const [first] = await lines(['keys', 'list'])
    expect(first).toMatch(/^[\w-]{43} {2}from the beginning {2}signs$/)
    const [second = ''] = await lines(['keys', 'rotate'])
    const { client } = await serve('start')
    const known = async () => (await client.get('/api/auth/jwks.json')).body.keys.map(({ kid }: { kid: string }) => kid)
    expect(await known()).toEqual(kids([second, first ?? '']))
    const [third = ''] = await lines(['keys', 'rotate'])
    expect(await known()).toEqual(kids([third, second, first ?? '']))
    const listed = await lines(['keys', 'list'])
    expect(kids(listed)).toEqual(await known())
    expect(listed.map((line) => line.includes('signs'))).toEqual([true, false, false])
  })
})

describe('the first administrator', () => {
  const linkPattern = /^ {2}First admin +(http:\S+\/setup)#(\S+)$/m

  test('dev prints a setup link until an administrator exists', async () => {
    const { client, printed, child } = await serve('dev')
    const [, page = '', token = ''] = linkPattern.exec(printed) ?? []
    expect((await fetch(page)).status).toBe(200)
    const made = await client.post('/api/auth/setup', { token, email: 'admin@example.com', password })
    expect(made.status).toBe(201)
    child.kill('SIGTERM')
    await child.exited
    expect((await serve('dev')).printed).not.toMatch(linkPattern)
  })

  test('start prints no setup link without a terminal', async () => {
    const { printed, url } = await serve('start')
    expect(printed).toBe(`Plinth is ready at ${url}\n`)
  })
})

describe.skipIf(!sharedEngine)('with nodes on PostgreSQL', () => {
  test('commands work on the database, and every node applies their changes', async () => {
    const storage = (await sharedEngine?.openStorage()) as Storage
    const { databaseUrl, redisUrl, redisPrefix } = storage.settings
    const env: Env = { DATABASE_URL: databaseUrl ?? '', REDIS_URL: redisUrl ?? '', REDIS_PREFIX: redisPrefix ?? '' }
    try {
      const nodes = [await serve('start', env), await serve('start', env)]
      await lines(['users', 'create', '--email', 'ann@example.com', '--password', password], env)
      const signedIn = await nodes[0]?.client.post('/api/auth/signin', { email: 'ann@example.com', password })
      expect(signedIn?.status).toBe(200)
      const headers = { authorization: `Bearer ${signedIn?.body.accessToken}` }
      const statuses = () =>
        Promise.all(nodes.map(async ({ client }) => (await client.get('/api/auth/me', headers)).status))
      expect(await statuses()).toEqual([200, 200])
      await lines(['users', 'disable', 'ann@example.com'], env)
      expect(await statuses()).toEqual([401, 401])
      expect(await lines(['keys', 'list'], env)).toHaveLength(1)
      expect(existsSync(join(commandLine.folder, 'data/address'))).toBe(false)
    } finally {
      await commandLine.end()
      await storage.remove()
    }
  })
})

test('[PUSH-WEB-6] `plinth keys vapid` prints a new valid key pair each time', async () => {
  const printed = await Promise.all([1, 2].map(() => new Response(spawn(['keys', 'vapid']).stdout).text()))
  const pairs = printed.map((text) => ({
    publicKey: /^publicKey: ([\w-]{87})$/m.exec(text)?.[1],
    privateKey: /^privateKey: ([\w-]{43})$/m.exec(text)?.[1],
  }))
  const mistakes = (vapid: object) =>
    findMistakes({ push: { vapid: { subject: 'mailto:a@b.example', ...vapid } } }, 'r')
  for (const pair of pairs) expect(mistakes(pair)).toEqual([])
  expect(mistakes({ ...pairs[0], privateKey: pairs[1]?.privateKey })).toHaveLength(1)
})
