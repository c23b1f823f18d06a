/** `plinth doctor`: checks the integrity of a data folder that no server uses. */
import { existsSync } from 'node:fs'
import { ConfigError } from '../../config/issues.ts'
import { loadDataLocation } from '../../config/load.ts'
import { type DatabaseReport, examine } from '../../engines/backup/doctor.ts'
import { type Command, formatRows } from '../command.ts'

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Check a data folder',
  options: { data: { value: '<folder>', help: 'The data folder (default ./data)' } },
  details: `Checks, without changing anything, that every database exists with its log and passes
SQLite's integrity check, that the change log has no gaps, and that every referenced
file exists with the right size. Prints the number of records of each table.
The server must not be running. Exits with 0 if no problems were found, else with 1.

With DATABASE_URL the data is in PostgreSQL, which has tools of its own (pg_amcheck).`,
  run({ options, terminal }) {
    const { dataFolder, databaseUrl, hasStore } = loadDataLocation(options)
    if (databaseUrl !== null)
      throw new ConfigError(
        'With DATABASE_URL the data is in PostgreSQL: check it with its own tools, such as pg_amcheck.',
      )
    if (!existsSync(dataFolder)) throw new ConfigError(`There is no data folder at ${dataFolder}`)
    const { databases, blobs, problems } = examine({ folder: dataFolder, hasStore })
    terminal.out(formatRows(databases.map((one) => [one.path, describe(one)] as const)))
    const files = hasStore
      ? 'in an S3 bucket, not checked'
      : `${blobs.present}, ${blobs.unreferenced} of them not in use`
    terminal.out(`Files: ${files}`)
    if (problems.length === 0) {
      terminal.out('No problems found.')
      return 0
    }
    terminal.error(`Problems found:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    terminal.error('Restore a backup into another folder (plinth restore), or copy the missing files back.')
    return 1
  },
}

/** Omits the platform's tables, which begin with `_`. */
function describe({ bytes, rows }: DatabaseReport): string {
  const counts = Object.entries(rows)
    .filter(([name]) => !name.startsWith('_'))
    .map(([name, count]) => `${name} ${count ?? '?'}`)
  return [`${bytes} bytes`, ...counts].join(', ')
}
