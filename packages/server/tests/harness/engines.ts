/**
 * The engines on which black-box tests run: the embedded ones, and PostgreSQL with Redis and S3 if `npm run test:all`
 * has started them (`scripts/test.ts`).
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
  /** Simulates elapsed time for expiries that the engines themselves measure. */
  elapse(ms: number): Promise<void>
  remove(): Promise<void>
}

const nothing = async (): Promise<void> => {}

/** The engine that stores everything in the folder and the process of the server. */
const embedded: Engine = {
  name: 'sqlite-files-memory',
  openStorage: async () => ({ settings: {}, elapse: nothing, remove: nothing }),
}

const {
  PLINTH_TEST_DATABASE_URL: databaseUrl,
  PLINTH_TEST_REDIS_URL: redisUrl,
  PLINTH_TEST_S3_URL: s3Url,
} = process.env

/** The engine with a separate PostgreSQL database, Redis prefix and S3 bucket for each server. */
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

/** The engine that several nodes can share; undefined unless `npm run test:all` has started it. */
export const sharedEngine: Engine | undefined = engines[1]
