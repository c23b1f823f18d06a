/** `plinth migrate`: shows schema changes that would lose data, and applies those that can be accepted. */
import { type AppOptions, openData } from '../../app.ts'
import type { Settings } from '../../config/config.ts'
import { load } from '../../config/load.ts'
import { withOfflineCopy } from '../../engines/backup/offline-copy.ts'
import { checkFolderFree } from '../../engines/disk/folder-lock.ts'
import { EngineError } from '../../engines/sql/error.ts'
import type { Call, Command } from '../command.ts'
import { configOptions } from '../serve.ts'

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'Show or apply schema changes that lose data',
  options: {
    ...configOptions,
    apply: { help: 'Drop the columns of removed fields and their data' },
  },
  details: `Changes that lose nothing (new tables, fields, indexes, search) are applied at every
start. A change that would lose data prevents the start; this command lists all of them
and what to do. Listing works while a server runs; before --apply, stop the server and
back up the data folder.`,
  run: migrate,
}

async function migrate({ options, terminal }: Call): Promise<number> {
  const { config, settings } = await load(options, 'release')
  if (options.apply !== undefined) {
    await withData({ config, settings }, ({ sql, schema }) =>
      schema.migrate(sql, config.storedNamespaces, { accept: true }),
    )
    terminal.out('The data is now compatible with the configuration.')
    return 0
  }
  const plan = ({ sql, schema }: Data) => schema.findConflicts(sql, config.storedNamespaces)
  const conflicts = isServed(settings)
    ? await withOfflineCopy(settings.dataFolder, (dataFolder) =>
        withData({ config, settings: { ...settings, dataFolder } }, plan),
      )
    : await withData({ config, settings }, plan)
  if (conflicts.length === 0) {
    terminal.out('The data is compatible with the configuration.')
    return 0
  }
  terminal.error(conflicts.map(({ message }) => message).join('\n'))
  return 1
}

type Data = Awaited<ReturnType<typeof openData>>

async function withData<T>(options: AppOptions, work: (data: Data) => Promise<T>): Promise<T> {
  const data = await openData(options)
  try {
    return await work(data)
  } finally {
    await data.sql.close()
  }
}

/** Whether a server has locked the data folder; PostgreSQL is shared. */
function isServed({ databaseUrl, dataFolder }: Settings): boolean {
  if (databaseUrl !== null) return false
  try {
    checkFolderFree(dataFolder)
    return false
  } catch (error) {
    if (error instanceof EngineError) return true
    throw error
  }
}
