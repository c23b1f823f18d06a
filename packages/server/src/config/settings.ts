/**
 * Parses settings: options take precedence over environment variables, and these over defaults. `load` reads the
 * environment.
 */

import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseTrustProxy } from '../base/network/address.ts'
import { parseDatabaseUrl } from '../base/network/database-url.ts'
import { secretCharsMin, serviceKeyCharsMin } from '../limits/api.ts'
import { type LogLevel, logLevels } from '../log-events/log-event.ts'
import type { Mode, Settings } from './config.ts'
import { ConfigError, suggest } from './issues.ts'
import { loadOrCreateSecret } from './secrets.ts'
import { readS3Settings } from './sections/storage/s3-settings.ts'
import { issuesOf, keyShape } from './shape.ts'

/** Command-line options of settings, unparsed. */
export interface SettingOptions {
  readonly data?: string | undefined
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly 'log-level'?: string | undefined
  /** A flag. */
  readonly 'accept-loss'?: string | undefined
}

/** Settings without what follows from the program's start. */
export type ParsedSettings = Omit<Settings, 'projectFolder' | 'environment'>

export type Environment = Readonly<Record<string, string | undefined>>

const portDefault = '4100'

const redisPrefixDefault = 'plinth:'

/** File names in the data folder. */
const secretFile = 'secret'
const serviceKeyFile = 'service-key'

/**
 * Parses the settings, and generates the secret and the service key if none are given. Throws `ConfigError` with all
 * issues before anything is written.
 */
export async function openSettings(
  options: SettingOptions,
  environment: Environment,
  mode: Mode,
): Promise<ParsedSettings> {
  const mistakes: string[] = []
  /** An empty variable counts as absent. */
  const read = <T>(name: string, text: string | undefined, parse: (text: string) => T): T | undefined => {
    if (text === undefined || text === '') return undefined
    try {
      return parse(text)
    } catch (error) {
      mistakes.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    }
  }
  const { PLINTH_DATA, PLINTH_HOST, PLINTH_PORT, PLINTH_SECRET, PLINTH_SERVICE_KEY, PLINTH_TRUST_PROXY } = environment
  const { DATABASE_URL, REDIS_URL, REDIS_PREFIX, PLINTH_PUBLIC_URL, PLINTH_BACKUP_FOLDER } = environment
  const dataFolder = resolve(options.data || PLINTH_DATA || 'data')
  const host = options.host || PLINTH_HOST || (mode === 'development' ? '127.0.0.1' : '0.0.0.0')
  const port = options.port
    ? read('--port', options.port, parsePort)
    : read('PLINTH_PORT', PLINTH_PORT || portDefault, parsePort)
  const trustProxy = read('PLINTH_TRUST_PROXY', PLINTH_TRUST_PROXY, parseTrustProxy)
  const publicUrl = read('PLINTH_PUBLIC_URL', PLINTH_PUBLIC_URL, parsePublicUrl)
  const logLevel = read('--log-level', options['log-level'], parseLogLevel)
  const databaseUrl = read('DATABASE_URL', DATABASE_URL, checkDatabaseUrl)
  const redisUrl = read('REDIS_URL', REDIS_URL, parseRedisUrl)
  const redisPrefix = read('REDIS_PREFIX', REDIS_PREFIX, parseRedisPrefix)
  const s3 = readS3Settings(environment, read)
  const givenSecret = read('PLINTH_SECRET', PLINTH_SECRET, parseSecret)
  const givenKey = read('PLINTH_SERVICE_KEY', PLINTH_SERVICE_KEY, parseServiceKey)
  if (existsSync(dataFolder) && !statSync(dataFolder).isDirectory())
    mistakes.push(`${options.data ? '--data' : 'PLINTH_DATA'}: ${dataFolder} is a file; name a folder`)
  if (mistakes.length > 0 || port === undefined) throw new ConfigError(mistakes.join('\n'))
  const settings: ParsedSettings = {
    dataFolder,
    backupFolder: PLINTH_BACKUP_FOLDER ? resolve(PLINTH_BACKUP_FOLDER) : null,
    acceptsLoss: options['accept-loss'] !== undefined,
    host,
    port,
    secret: givenSecret ?? (await keepIn(dataFolder, secretFile, secretCharsMin)),
    serviceKey: givenKey ?? (await keepIn(dataFolder, serviceKeyFile, serviceKeyCharsMin)),
    trustProxy: trustProxy ?? { kind: 'none' },
    publicUrl: publicUrl ?? null,
    logLevel: logLevel ?? 'info',
    databaseUrl: databaseUrl ?? null,
    redisUrl: redisUrl ?? null,
    redisPrefix: redisPrefix ?? redisPrefixDefault,
    s3,
  }
  return Object.freeze(settings)
}

/** As `loadOrCreateSecret`. Throws `ConfigError` also if the folder cannot be created or written. */
async function keepIn(dataFolder: string, file: string, charsMin: number): Promise<string> {
  try {
    return await loadOrCreateSecret(resolve(dataFolder, file), charsMin)
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    const remedy = 'Name a folder that this user may write, with --data or PLINTH_DATA.'
    throw new ConfigError(`The data folder ${dataFolder} cannot be created or written (${code}). ${remedy}`)
  }
}

/**
 * The secret of a server that has been started before, for commands that do not serve. Throws `ConfigError` if there is
 * none.
 */
export async function getSecret(
  { data }: SettingOptions,
  { PLINTH_DATA, PLINTH_SECRET }: Environment,
): Promise<string> {
  if (PLINTH_SECRET) return PLINTH_SECRET
  const path = resolve(data || PLINTH_DATA || 'data', secretFile)
  if (existsSync(path)) return loadOrCreateSecret(path, secretCharsMin)
  throw new ConfigError(`There is no secret at ${path}. Start the server once, or name its data folder with --data.`)
}

/** The location of a server's data. */
export interface DataLocation {
  /** Absolute; need not exist. */
  readonly dataFolder: string
  readonly databaseUrl: string | null
  /** Whether files are in an S3 bucket. */
  readonly hasStore: boolean
  /** Null if none was given or generated yet. */
  readonly serviceKey: string | null
}

/** Reads without generating secrets, for commands on data whose server may be stopped. */
export function readDataLocation({ data }: SettingOptions, environment: Environment): DataLocation {
  const { PLINTH_DATA, DATABASE_URL, S3_BUCKET, PLINTH_SERVICE_KEY } = environment
  const dataFolder = resolve(data || PLINTH_DATA || 'data')
  const keyPath = resolve(dataFolder, serviceKeyFile)
  return {
    dataFolder,
    databaseUrl: DATABASE_URL || null,
    hasStore: Boolean(S3_BUCKET),
    serviceKey: PLINTH_SERVICE_KEY || (existsSync(keyPath) ? readFileSync(keyPath, 'utf8').trim() : null),
  }
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1
  if (port < 0 || port > 65_535) throw new RangeError('must be a port from 0 (any free one) to 65535')
  return port
}

function parseLogLevel(text: string): LogLevel {
  const level = logLevels.find((known) => known === text)
  if (!level) throw new RangeError(`must be one of ${logLevels.join(', ')}.${suggest(text, logLevels)}`)
  return level
}

/** The error does not quote the text, which may contain a password. */
function parseUrl(text: string, schemes: readonly string[], example: string): URL {
  const mistake = `must be an address such as ${example}`
  if (!URL.canParse(text)) throw new RangeError(mistake)
  const url = new URL(text)
  if (!schemes.includes(url.protocol.slice(0, -1)) || url.hostname === '') throw new RangeError(mistake)
  return url
}

function parsePublicUrl(text: string): string {
  const url = parseUrl(text, ['http', 'https'], 'https://api.example.com')
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '')
    throw new RangeError('must have no path, such as https://api.example.com')
  return url.origin
}

function checkDatabaseUrl(text: string): string {
  parseDatabaseUrl(text)
  return text
}

function parseRedisUrl(text: string): string {
  const { pathname } = parseUrl(text, ['redis', 'rediss'], 'redis://:password@host:6379 (rediss: with TLS)')
  if (!/^(?:\/\d*)?$/.test(pathname))
    throw new RangeError('may name a database only by its number, as in redis://host:6379/1')
  return text
}

function parseRedisPrefix(text: string): string {
  // Braces are hash tags, which decide the slot of a key in Redis Cluster.
  if (!/^[\w:.-]{1,64}$/.test(text)) throw new RangeError('must be 1 to 64 letters, digits, or any of _ : . -')
  return text
}

function parseSecret(text: string): string {
  if (text.length < secretCharsMin) throw new RangeError(`must have at least ${secretCharsMin} characters`)
  return text
}

function parseServiceKey(text: string): string {
  const { success, data, error } = keyShape.safeParse(text, { reportInput: true })
  if (!success) throw new RangeError(issuesOf(error.issues)[0]?.message)
  return data
}
