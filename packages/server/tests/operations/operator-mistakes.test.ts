/** Mistakes of operators, each run through the command: the error names the mistake and contains no stack. */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Env, openCommandLine } from '../harness/processes/command-line.ts'

const commandLine = openCommandLine(['node', join(import.meta.dir, '../../bin/plinth.mjs')], 'SIGTERM')
const password = 'hushhush-hushhush'

const configs = {
  'plinth.config.ts': 'export default { databases: { shared: { tables: { notes: { access: { read: true } } } } } }',
  'syntax.ts': 'export default {\n  databases: {',
  'throws.ts': "\nthrow new TypeError('no such thing')",
  'nothing.ts': 'export const config = {}',
  'import.ts': "import './missing.ts'\nexport default {}",
  'unknown.ts': 'export default { databses: {} }',
}

/** Writes the files that the mistakes refer to. */
function prepare(): void {
  const { folder } = commandLine
  for (const [name, text] of Object.entries(configs)) writeFileSync(join(folder, name), text)
  writeFileSync(join(folder, 'file'), 'this is neither a folder nor an archive'.repeat(40))
  mkdirSync(join(folder, 'damaged/databases'), { recursive: true })
  writeFileSync(join(folder, 'damaged/databases/shared.sqlite'), 'this is no database'.repeat(1000))
  mkdirSync(join(folder, 'short'))
  writeFileSync(join(folder, 'short/secret'), 'short\n')
}

/** Asserts that the output contains no stack, also not within a line of the log, and no password. */
function expectNoInternals(text: string): void {
  expect(text).not.toMatch(/(?:^|\n|\\n)\s+at /)
  expect(text).not.toMatch(/node:internal|\.ts:\d+:\d+\)/)
  expect(text).not.toContain(password)
}

interface Mistake {
  readonly what: string
  readonly words: readonly string[]
  readonly env?: Env
  readonly error: readonly string[]
  readonly code?: number
}

const start = (...words: string[]): string[] => ['start', '--host', '127.0.0.1', '--port', '0', ...words]
const withEnv = (env: Env, ...error: string[]): Mistake => ({
  what: Object.entries(env).join(' ').replace(',', '='),
  words: start().filter((word) => word !== '--port' && word !== '0'),
  env,
  error,
})

const mistakes: readonly Mistake[] = [
  { what: 'a missing configuration', words: start('--config', 'nope.ts'), error: ['nope.ts', 'plinth init'] },
  { what: 'a folder as configuration', words: start('--config', '.'), error: ['is a folder', '--config'] },
  { what: 'a configuration with a syntax error', words: start('--config', 'syntax.ts'), error: ['syntax.ts:2:'] },
  {
    what: 'a configuration that throws',
    words: start('--config', 'throws.ts'),
    error: ['throws.ts:2:', 'no such thing'],
  },
  {
    what: 'a configuration without a default export',
    words: start('--config', 'nothing.ts'),
    error: ['no default export'],
  },
  {
    what: 'one that imports what is missing',
    words: start('--config', 'import.ts'),
    error: ['import.ts:1:', 'missing.ts'],
  },
  {
    what: 'a configuration with an unknown member',
    words: start('--config', 'unknown.ts'),
    error: ['databses', 'databases'],
  },
  { what: 'a port out of range', words: ['start', '--port', '70000'], error: ['--port', '65535'] },
  { what: 'a malformed port', words: ['start', '--port', '1e3'], error: ['--port', '65535'] },
  {
    what: 'an address of another machine',
    words: ['start', '--port', '0', '--host', '203.0.113.7'],
    error: ['203.0.113.7', '--host'],
  },
  {
    what: 'a host that does not exist',
    words: ['start', '--port', '0', '--host', 'nope.invalid'],
    error: ['nope.invalid', '--host'],
  },
  {
    what: 'a data folder that cannot be made',
    words: start('--data', '/proc/plinth'),
    error: ['/proc/plinth', '--data'],
  },
  { what: 'a data folder below a file', words: start('--data', 'file/below'), error: ['file/below', '--data'] },
  { what: 'a data folder that is a file', words: start('--data', 'file'), error: ['is a file'] },
  {
    what: 'a damaged database',
    words: start('--data', 'damaged'),
    error: ['damaged/databases/shared.sqlite is damaged', 'plinth doctor', 'plinth restore'],
  },
  { what: 'a truncated secret file', words: start('--data', 'short'), error: ['short/secret', '32'] },
  { what: 'an unknown option', words: start('--prot', '5'), error: ['Did you mean "--port"?'], code: 2 },
  { what: 'an unknown command', words: ['strat'], error: ['Did you mean "start"?'], code: 2 },
  {
    what: 'a restore of what is no archive',
    words: ['restore', 'file', '--data', 'new'],
    error: ['is not a backup of Plinth'],
  },
  { what: 'a restore of a missing archive', words: ['restore', 'nope.tar', '--data', 'new'], error: ['nope.tar'] },
  { what: 'a check of a missing folder', words: ['doctor', '--data', 'nope'], error: ['nope'] },
  { what: 'a token without a secret', words: ['token', 'ada', '--data', 'nope'], error: ['nope', '--data'] },
  withEnv({ DATABASE_URL: `mysql://u:${password}@127.0.0.1/d` }, 'DATABASE_URL', 'postgres://'),
  withEnv({ DATABASE_URL: `postgres://u:${password}@127.0.0.1` }, 'DATABASE_URL', 'must name a database'),
  withEnv({ REDIS_URL: `http://:${password}@127.0.0.1` }, 'REDIS_URL', 'redis://'),
  withEnv({ REDIS_PREFIX: '{}' }, 'REDIS_PREFIX'),
  withEnv({ S3_BUCKET: 'bucket' }, 'S3_ENDPOINT'),
  withEnv({ PLINTH_SECRET: 'short' }, 'PLINTH_SECRET', '32'),
  withEnv({ PLINTH_SERVICE_KEY: 'short' }, 'PLINTH_SERVICE_KEY', '16'),
  withEnv({ PLINTH_PORT: 'http' }, 'PLINTH_PORT', '65535'),
  withEnv({ PLINTH_TRUST_PROXY: 'banana' }, 'PLINTH_TRUST_PROXY', 'banana'),
  withEnv({ PLINTH_PUBLIC_URL: 'https://a.example/path' }, 'PLINTH_PUBLIC_URL', 'no path'),
]

const {
  PLINTH_TEST_DATABASE_URL: databaseUrl,
  PLINTH_TEST_REDIS_URL: redisUrl,
  PLINTH_TEST_S3_URL: s3Url,
} = process.env

/** The URL of a server with a wrong password. */
function withPassword(href: string): string {
  const url = new URL(href)
  url.password = password
  return url.href
}

describe('a mistake of an operator', () => {
  for (const { what, words, env = {}, error, code = 1 } of mistakes)
    test(`[FAULT-9] ${what} is named in the error`, async () => {
      prepare()
      const ended = await commandLine.run(words, env)
      for (const part of error) expect(ended.error).toContain(part)
      expectNoInternals(ended.error + ended.out)
      expect(ended).toMatchObject({ code, out: '' })
    })

  test('[FAULT-9] a port that is in use is named in the error', async () => {
    prepare()
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { error, code } = await commandLine.run(['start', '--host', '127.0.0.1', '--port', String(other.port)])
    await other.stop(true)
    expect(code).toBe(1)
    expect(error).toContain(' on 127.0.0.1 is in use')
    expectNoInternals(error)
  })

  /** Engines that the server waits for; its log names them. */
  const waitedFor: [string, Env, readonly string[]][] = [
    [
      'PostgreSQL that cannot be reached',
      { DATABASE_URL: `postgres://u:${password}@127.0.0.1:1/d` },
      ['PostgreSQL at 127.0.0.1:1', 'ECONNREFUSED'],
    ],
    [
      'Redis that cannot be reached',
      { REDIS_URL: `redis://:${password}@127.0.0.1:1` },
      ['redis.connection_lost', '127.0.0.1:1', 'ECONNREFUSED'],
    ],
    [
      'a store that cannot be reached',
      {
        S3_ENDPOINT: 'http://127.0.0.1:1',
        S3_BUCKET: 'bucket',
        S3_ACCESS_KEY_ID: 'key',
        S3_SECRET_ACCESS_KEY: password,
      },
      ['engine.unavailable', 'The S3 store at http://127.0.0.1:1', 'ECONNREFUSED'],
    ],
  ]
  if (redisUrl !== undefined)
    waitedFor.push([
      'Redis with another password',
      { REDIS_URL: withPassword(redisUrl) },
      ['redis.connection_lost', new URL(redisUrl).host, 'WRONGPASS'],
    ])
  if (s3Url !== undefined) {
    const { origin, username, password: secret } = new URL(s3Url)
    const store = { S3_ENDPOINT: origin, S3_BUCKET: 'there-is-none', S3_ACCESS_KEY_ID: username }
    const name = `The S3 store at ${origin}, bucket \\"there-is-none\\"`
    waitedFor.push(
      [
        'a store with another secret',
        { ...store, S3_SECRET_ACCESS_KEY: password },
        [name, 'refuses', '403 AccessDenied'],
      ],
      [
        'a bucket that does not exist',
        { ...store, S3_SECRET_ACCESS_KEY: secret },
        [name, 'refuses', '404 NoSuchBucket'],
      ],
    )
  }
  for (const [what, env, logged] of waitedFor)
    test(`[FAULT-9] ${what} is named in the log, and the command waits for it`, async () => {
      prepare()
      const child = commandLine.spawn(start(), env)
      let out = ''
      const decoder = new TextDecoder()
      for await (const chunk of child.stdout) {
        out += decoder.decode(chunk, { stream: true })
        if (logged.every((part) => out.includes(part))) break
      }
      for (const part of logged) expect(out).toContain(part)
      expectNoInternals(out)
      expect(child.exitCode).toBeNull()
    })

  test.skipIf(databaseUrl === undefined)(
    '[FAULT-9] a password that PostgreSQL refuses is an error without the password',
    async () => {
      prepare()
      const url = new URL(withPassword(databaseUrl ?? ''))
      const { error, code } = await commandLine.run(start(), { DATABASE_URL: url.href })
      expect(code).toBe(1)
      expect(error).toContain(`PostgreSQL at ${url.host}, database "postgres"`)
      expect(error).toContain('refuses the user or its password')
      expectNoInternals(error)
    },
  )

  test.skipIf(databaseUrl === undefined)('[FAULT-9] a database that does not exist is named in the error', async () => {
    prepare()
    const url = new URL(databaseUrl ?? '')
    url.pathname = '/there-is-none'
    const { error, code } = await commandLine.run(start(), { DATABASE_URL: url.href })
    expect(code).toBe(1)
    expect(error).toContain(`${url.hostname}:${url.port}`)
    expect(error).toContain('there-is-none')
    expectNoInternals(error)
  })
})
