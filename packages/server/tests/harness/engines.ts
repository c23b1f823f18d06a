/**
 * The engines every black-box test runs on: those of one machine, and PostgreSQL with Redis, and with S3, where `npm
 * run test:all` has started them. Another engine is another entry. Leaves starting servers to `scripts/test.ts`.
 */
import type { Settings } from '../../src/config/config.ts'
import { createDatabase } from './databases.ts'
import { ageKeys, removeKeys } from './redis-keys.ts'
import { openBucket } from './storage/s3-buckets.ts'

export interface Engine {
  readonly name: string
  /** Opens storage of its own for one server. Must be removed. */
  openStorage(): Promise<Storage>
}

export interface Storage {
  /** Settings of a server on this storage, beside its folder. */
  readonly settings: Partial<Settings>
  /** Has time pass for what the engines time themselves, by clocks that no test can move. */
  elapse(ms: number): Promise<void>
  remove(): Promise<void>
}

const nothing = async (): Promise<void> => {}

/** Everything in the server's own folder and process. */
const embedded: Engine = {
  name: 'sqlite-files-memory',
  openStorage: async () => ({ settings: {}, elapse: nothing, remove: nothing }),
}

const {
  PLINTH_TEST_DATABASE_URL: databaseUrl,
  PLINTH_TEST_REDIS_URL: redisUrl,
  PLINTH_TEST_S3_URL: s3Url,
} = process.env

/** A database of its own in PostgreSQL, keys of its own in Redis, and a bucket of its own in S3. */
const shared = (databaseServer: string, redisUrl: string, s3Server: string | undefined): Engine => ({
  name: s3Server ? 'postgres-redis-s3' : 'postgres-redis-files',
  async openStorage() {
    const database = await createDatabase(databaseServer)
    const bucket = s3Server ? await openBucket(s3Server) : null
    const redisPrefix = `${crypto.randomUUID()}:`
    return {
      settings: { databaseUrl: database.url, redisUrl, redisPrefix, s3: bucket?.address ?? null },
      elapse: (ms) => ageKeys(redisUrl, redisPrefix, ms),
      async remove() {
        await removeKeys(redisUrl, redisPrefix)
        await bucket?.remove()
        await database.drop()
      },
    }
  },
})

export const engines: readonly Engine[] =
  databaseUrl && redisUrl ? [embedded, shared(databaseUrl, redisUrl, s3Url)] : [embedded]

/** The one that several nodes can share; undefined where `npm run test:all` has not started it. */
export const sharedEngine: Engine | undefined = engines[1]
