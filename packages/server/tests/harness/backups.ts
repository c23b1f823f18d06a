/** Folders and servers of backup tests, removed after each test of the file. */
import { afterEach, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Environment, runCommand } from './processes/command.ts'
import { type SpawnedServer, spawnServer } from './processes/spawn.ts'
import { rootKey, tokenSecret } from './server.ts'

/** The environment of commands that run beside a spawned server. */
export const environment: Environment = { PLINTH_SERVICE_KEY: rootKey, PLINTH_SECRET: tokenSecret }

export const restore = (archive: string, dataFolder: string, ...words: string[]) =>
  runCommand(['restore', archive, '--data', dataFolder, ...words], environment)

/** `configText` is the configuration of all servers. Call it at the top of a test file. */
export function backupSetting(configText: string) {
  const opened: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close()
  })

  const spawnEmbedded = async (): Promise<SpawnedServer> => {
    const server = await spawnServer(configText)
    opened.push(server.remove)
    return server
  }

  return {
    makeFolder(): string {
      const folder = mkdtempSync(join(tmpdir(), 'plinth-backup-'))
      opened.push(() => rmSync(folder, { recursive: true, force: true }))
      return folder
    },
    spawnEmbedded,
    /** A server on the data of an archive. */
    async serveArchive(archive: string): Promise<SpawnedServer> {
      const restored = await spawnEmbedded()
      await restored.terminate()
      rmSync(restored.dataFolder, { recursive: true })
      expect(await restore(archive, restored.dataFolder)).toMatchObject({ code: 0 })
      await restored.start()
      return restored
    },
  }
}
