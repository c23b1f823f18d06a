import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { openSettings } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-settings-'))
afterAll(() => rmSync(folder, { recursive: true }))

const secrets = { PLINTH_SECRET: 's'.repeat(32), PLINTH_SERVICE_KEY: 'k'.repeat(16) }

test('defaults', async () => {
  expect(await openSettings({}, secrets, 'development')).toEqual({
    dataFolder: resolve('data'),
    acceptsLoss: false,
    backupFolder: null,
    host: '127.0.0.1',
    port: 4100,
    secret: secrets.PLINTH_SECRET,
    serviceKey: secrets.PLINTH_SERVICE_KEY,
    trustProxy: { kind: 'none' },
    publicUrl: null,
    logLevel: 'info',
    databaseUrl: null,
    redisUrl: null,
    redisPrefix: 'plinth:',
    s3: null,
  })
  expect(await openSettings({}, secrets, 'release')).toMatchObject({ host: '0.0.0.0' })
})

test('the environment, and the command line before it', async () => {
  const environment = {
    ...secrets,
    PLINTH_DATA: join(folder, 'a'),
    PLINTH_HOST: '::1',
    PLINTH_PORT: '5000',
    PLINTH_TRUST_PROXY: '1',
    PLINTH_PUBLIC_URL: 'https://api.example.com/',
  }
  expect(await openSettings({}, environment, 'release')).toMatchObject({
    dataFolder: join(folder, 'a'),
    host: '::1',
    port: 5000,
    trustProxy: { kind: 'hops', hops: 1 },
    publicUrl: 'https://api.example.com',
  })
  const options = { data: join(folder, 'b'), host: 'localhost', port: '0', 'log-level': 'debug' }
  expect(await openSettings(options, environment, 'release')).toMatchObject({
    dataFolder: join(folder, 'b'),
    host: 'localhost',
    port: 0,
    logLevel: 'debug',
  })
})

test('the public URL is an origin, since everything hangs below it', async () => {
  for (const text of [
    'api.example.com',
    'ftp://api.example.com',
    'https://api.example.com/x',
    'https://a:b@example.com',
  ])
    await expect(openSettings({}, { ...secrets, PLINTH_PUBLIC_URL: text }, 'release')).rejects.toThrow(
      'PLINTH_PUBLIC_URL: must ',
    )
})

test('an empty variable is none', async () => {
  const environment = { ...secrets, PLINTH_DATA: '', PLINTH_HOST: '', PLINTH_PORT: '', PLINTH_TRUST_PROXY: '' }
  expect(await openSettings({}, environment, 'release')).toMatchObject({ host: '0.0.0.0', port: 4100 })
})

test('secrets that are not given are made up in the data folder, and the same the next time', async () => {
  const options = { data: join(folder, 'fresh') }
  const first = await openSettings(options, { PLINTH_SECRET: '' }, 'release')
  expect(first.secret).not.toBe(first.serviceKey)
  expect(readFileSync(join(options.data, 'secret'), 'utf8')).toBe(`${first.secret}\n`)
  expect(readFileSync(join(options.data, 'service-key'), 'utf8')).toBe(`${first.serviceKey}\n`)
  expect(await openSettings(options, {}, 'release')).toEqual(first)
})

test('every mistake is said, before anything is written', async () => {
  const data = join(folder, 'never')
  const environment = { PLINTH_SECRET: 'short', PLINTH_SERVICE_KEY: 'with a space in it', PLINTH_TRUST_PROXY: 'all' }
  const options = { data, port: '70000', 'log-level': 'inof' }
  await expect(openSettings(options, environment, 'release')).rejects.toThrow(
    [
      '--port: must be a port from 0 (any free one) to 65535',
      "PLINTH_TRUST_PROXY: 'all' is not an address or a network such as 10.0.0.0/8",
      '--log-level: must be one of debug, info, warn, error. Did you mean "info"?',
      'PLINTH_SECRET: must have at least 32 characters',
      'PLINTH_SERVICE_KEY: must be printable ASCII without spaces',
    ].join('\n'),
  )
  expect(existsSync(data)).toBe(false)
})

test.each(['-1', '1.5', '0x10', 'x', '99999'])('a port cannot be %s', async (port) => {
  await expect(openSettings({}, { ...secrets, PLINTH_PORT: port }, 'release')).rejects.toThrow(
    'PLINTH_PORT: must be a port',
  )
})

test('PostgreSQL and Redis are named by their addresses', async () => {
  const DATABASE_URL = 'postgres://ada:p%40ss@db.example:5433/plinth?sslmode=require'
  const REDIS_URL = 'rediss://:p%40ss@redis.example:6380/2'
  const settings = await openSettings({}, { ...secrets, DATABASE_URL, REDIS_URL, REDIS_PREFIX: 'blue:' }, 'release')
  expect(settings).toMatchObject({ databaseUrl: DATABASE_URL, redisUrl: REDIS_URL, redisPrefix: 'blue:' })
})

test.each([
  ['DATABASE_URL', 'mysql://ada:hunter2@db.example/plinth', 'must be an address such as postgres://'],
  ['DATABASE_URL', 'postgres://ada:hunter2@db.example', 'must name a database'],
  ['DATABASE_URL', 'postgres://ada:hunter2@db.example/', 'must name a database'],
  ['DATABASE_URL', 'postgres:///plinth?password=hunter2', 'must be an address'],
  ['DATABASE_URL', 'ada:hunter2@db.example/plinth', 'must be an address'],
  ['REDIS_URL', 'http://:hunter2@redis.example', 'must be an address such as redis://'],
  ['REDIS_URL', 'redis.example:6379?password=hunter2', 'must be an address'],
  ['REDIS_URL', 'redis://:hunter2@redis.example:port', 'must be an address'],
  ['REDIS_URL', 'redis://:hunter2@redis.example/plinth', 'may name a database only by its number'],
  ['REDIS_PREFIX', '{all}', 'must be 1 to 64 letters'],
])('%s cannot be %s, and what it is stays a secret', async (name, value, mistake) => {
  const opened = openSettings({}, { ...secrets, [name]: value }, 'release')
  const error = await opened.then(
    () => null,
    (reason: Error) => reason,
  )
  expect(error?.message).toStartWith(`${name}: ${mistake}`)
  expect(Bun.inspect(error)).not.toContain('hunter2')
})

const s3 = {
  S3_ENDPOINT: 'https://s3.example.com/',
  S3_BUCKET: 'plinth-files',
  S3_ACCESS_KEY_ID: 'AKID',
  S3_SECRET_ACCESS_KEY: 'hunter2+/=',
}

test('an S3 store is named by its address, a bucket and a key', async () => {
  const address = { bucket: 'plinth-files', accessKeyId: 'AKID', secretAccessKey: 'hunter2+/=' }
  expect(await openSettings({}, { ...secrets, ...s3 }, 'release')).toMatchObject({
    s3: { ...address, endpoint: 'https://s3.example.com', region: 'us-east-1' },
  })
  const elsewhere = { S3_ENDPOINT: 'http://[::1]:9000/store/', S3_REGION: 'eu-central-1' }
  expect(await openSettings({}, { ...secrets, ...s3, ...elsewhere }, 'release')).toMatchObject({
    s3: { ...address, endpoint: 'http://[::1]:9000/store', region: 'eu-central-1' },
  })
})

test('a region alone, or empty variables, name no S3 store', async () => {
  const environment = { ...secrets, S3_REGION: 'eu-central-1', S3_ENDPOINT: '', S3_BUCKET: '' }
  expect(await openSettings({}, environment, 'release')).toMatchObject({ s3: null })
})

test.each([
  ['S3_ENDPOINT', '', 'is missing'],
  ['S3_BUCKET', '', 'is missing'],
  ['S3_ACCESS_KEY_ID', '', 'is missing'],
  ['S3_SECRET_ACCESS_KEY', '', 'is missing'],
  ['S3_ENDPOINT', 's3.example.com', 'must be an address'],
  ['S3_ENDPOINT', 'ftp://s3.example.com', 'must be an address'],
  ['S3_ENDPOINT', 'https://ada:hunter2@s3.example.com', 'must be an address'],
  ['S3_ENDPOINT', 'https://s3.example.com/?key=hunter2', 'must be an address'],
  ['S3_BUCKET', 'a/b', 'must be the name of a bucket'],
  ['S3_BUCKET', '..', 'must be the name of a bucket'],
  ['S3_BUCKET', 'b?uploads', 'must be the name of a bucket'],
  ['S3_REGION', 'eu/central', 'must be a region'],
  ['S3_ACCESS_KEY_ID', 'two words', 'must be printable'],
  ['S3_SECRET_ACCESS_KEY', 'hunter2\n', 'must be printable'],
])('%s cannot be %j, and what it is stays a secret', async (name, value, mistake) => {
  const error = await openSettings({}, { ...secrets, ...s3, [name]: value }, 'release').then(
    () => null,
    (reason: Error) => reason,
  )
  expect(error?.message).toStartWith(`${name}: ${mistake}`)
  expect(Bun.inspect(error)).not.toContain('hunter2')
})
