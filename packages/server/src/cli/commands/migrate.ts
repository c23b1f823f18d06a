/**
 * `plinth migrate`: what stands between the data and the configuration, and accepting the losses that can be accepted.
 */
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
  summary: 'Show or accept changes of tables that lose data',
  options: {
    ...configOptions,
    apply: { help: 'Drop the columns of removed fields, with what they hold' },
  },
  details: `Changes that lose nothing (new tables, fields, indexes, search) happen at every start.
A change that would lose data stops the start; this shows all of them and what to do.
The plan may be shown while a server runs; to apply it, stop the server and make a copy
of the data folder first.`,
  run: migrate,
}

async function migrate({ options, terminal }: Call): Promise<number> {
  const { config, settings } = await load(options, 'release')
  if (options.apply !== undefined) {
    await withData({ config, settings }, ({ sql, schema }) =>
      schema.migrate(sql, config.storedNamespaces, { accept: true }),
    )
    terminal.out('The data fits the configuration now.')
    return 0
  }
  const plan = ({ sql, schema }: Data) => schema.findConflicts(sql, config.storedNamespaces)
  const conflicts = isServed(settings)
    ? await withOfflineCopy(settings.dataFolder, (dataFolder) =>
        withData({ config, settings: { ...settings, dataFolder } }, plan),
      )
    : await withData({ config, settings }, plan)
  if (conflicts.length === 0) {
    terminal.out('Nothing stands in the way of a start.')
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

/** Whether a server has the data folder for itself; PostgreSQL is shared. */
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
