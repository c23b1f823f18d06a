/**
 * A private PostgreSQL and Redis to develop against, and with `--s3` an S3 store: `node scripts/run.mjs
 * scripts/databases.ts` prints their addresses as lines for a shell, `node scripts/run.mjs scripts/databases.ts FILE`
 * writes them to a file once all take connections. They run until Ctrl-C, and are removed afterwards.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openPostgres } from './servers/postgres.ts'
import type { PrivateServer } from './servers/private-server.ts'
import { providePostgres, provideRedis, provideS3 } from './servers/programs.ts'
import { openRedis } from './servers/redis.ts'
import { createBucket, openS3 } from './servers/s3.ts'

/** Writes a file atomically, readable by its owner only. */
function writeAtomically(path: string, text: string): void {
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, text, { mode: 0o600 })
  renameSync(temporary, path)
}

/** Starts an S3 server with a bucket in it; gives the lines for a shell. */
async function addS3(program: string, servers: PrivateServer[]): Promise<string> {
  const server = await openS3(program)
  servers.push(server)
  const { endpoint, bucket, accessKeyId, secretAccessKey } = await createBucket(server.url, 'plinth')
  return [
    `export S3_ENDPOINT='${endpoint}' S3_BUCKET='${bucket}'`,
    `export S3_ACCESS_KEY_ID='${accessKeyId}' S3_SECRET_ACCESS_KEY='${secretAccessKey}'`,
    '',
  ].join('\n')
}

async function main(): Promise<number> {
  const stopped = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopped.resolve())
  const { positionals, values } = parseArgs({
    options: { s3: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [file] = positionals
  const [programs, redisPath, s3Path] = [providePostgres(), provideRedis(), values.s3 ? provideS3() : null]
  if (programs === null || redisPath === null || (values.s3 && s3Path === null)) {
    const missing = programs === null ? 'PostgreSQL' : redisPath === null ? 'Redis' : 'The S3 server'
    console.error(`${missing} is not on this machine and cannot be installed here.`)
    return 1
  }
  const servers: PrivateServer[] = []
  try {
    servers.push(await openPostgres(programs), await openRedis(redisPath))
    const [databaseUrl, redisUrl] = servers.map(({ url }) => url)
    const s3 = s3Path === null ? '' : await addS3(s3Path, servers)
    const text = `export DATABASE_URL='${databaseUrl}'\nexport REDIS_URL='${redisUrl}'\n${s3}`
    if (file === undefined) process.stdout.write(text)
    else writeAtomically(file, text)
    await stopped.promise
    return 0
  } finally {
    if (file !== undefined) rmSync(file, { force: true })
    for (const server of servers) await server.remove()
  }
}

process.exit(await main())
