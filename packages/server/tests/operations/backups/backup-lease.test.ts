/** Files that a backup needs are kept while it runs: by a lease of the running server, or because no server runs. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backupSetting, environment } from '../../harness/backups.ts'
import { runCommand, startCommand } from '../../harness/processes/command.ts'
import { filePath, store } from '../../harness/storage/files.ts'

const configText = `
export default {
  rateLimits: { storage: { requests: 10000000 } },
  storage: { buckets: { small: { quota: 4000000, access: { read: true, write: true, delete: true } } } },
}
`
const { makeFolder, spawnEmbedded, serveArchive } = backupSetting(configText)

/** Resolves once a file has 1 MB. */
async function untilGrown(path: string): Promise<void> {
  while (!existsSync(path) || statSync(path).size <= 1_000_000) await new Promise((resolve) => setTimeout(resolve, 1))
}

test('[BACKUP-15] a backup contains files that are replaced while it runs, and replaced files are deleted after it', async () => {
  const server = await spawnEmbedded()
  const blobsFolder = join(server.dataFolder, 'blobs')
  // An unreferenced large file makes the backup take longer than some hundred replacements.
  mkdirSync(join(blobsFolder, 'zz'), { recursive: true })
  writeFileSync(join(blobsFolder, 'zz', 'ballast-zz'), '')
  truncateSync(join(blobsFolder, 'zz', 'ballast-zz'), 800_000_000)
  const keys = ['a', 'b', 'c']
  let replaced = 0
  let goesOn = true
  const replace = async (key: string): Promise<void> => {
    for (let n = 0; goesOn; n++) {
      await store(server.service, 'small', { key, content: `${key} ${n} `.padEnd(1_000_000, key) })
      replaced++
    }
  }
  const load = keys.map(replace)
  const reach = async (count: number): Promise<void> => {
    while (replaced < count) await server.anonymous.get('/api/health')
  }
  await reach(60)
  const archive = join(makeFolder(), 'backup.tar')
  const before = replaced
  expect(await runCommand(['backup', archive, '--data', server.dataFolder], environment)).toMatchObject({ code: 0 })
  expect(replaced - before).toBeGreaterThan(30)
  await reach(replaced + 60)
  goesOn = false
  await Promise.all(load)
  // No more of the files that the lease has kept are left than the limit of the bucket.
  const left = readdirSync(blobsFolder, { recursive: true, encoding: 'utf8' }).filter((path) => {
    const { size } = statSync(join(blobsFolder, path))
    return size === 1_000_000
  })
  expect(left.length).toBeLessThan(30)

  const restored = await serveArchive(archive)
  for (const key of keys) {
    const { status, text } = await restored.anonymous.get(filePath('small', key))
    expect(status).toBe(200)
    expect(text).toHaveLength(1_000_000)
    expect(text[0]).toBe(key)
  }
})

test('[BACKUP-15] a backup without a server fails if a server has changed files meanwhile', async () => {
  const server = await spawnEmbedded()
  await store(server.service, 'small', { key: 'a', content: 'first' })
  await server.terminate()
  const ballast = join(server.dataFolder, 'blobs', 'zz')
  mkdirSync(ballast, { recursive: true })
  writeFileSync(join(ballast, 'ballast-zz'), '')
  truncateSync(join(ballast, 'ballast-zz'), 1_500_000_000)
  const folder = makeFolder()
  const archive = join(folder, 'backup.tar')
  const backup = startCommand(['backup', archive, '--data', server.dataFolder], environment)
  await untilGrown(`${archive}.partial/archive`)
  backup.kill('SIGSTOP')
  await server.start()
  await store(server.service, 'small', { key: 'a', content: 'second' })
  backup.kill('SIGCONT')
  expect(await backup.exited).toBe(1)
  expect(readdirSync(folder)).toEqual([])
})
