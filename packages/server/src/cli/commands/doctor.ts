/** `plinth doctor`: checks the integrity of a data folder that no server uses, or advises on a running server. */
import { existsSync } from 'node:fs'
import { ConfigError } from '../../config/issues.ts'
import { loadDataLocation } from '../../config/load.ts'
import { type DatabaseReport, examine } from '../../engines/backup/doctor.ts'
import { type Command, formatRows } from '../command.ts'
import { printAdvice } from '../doctor-advice.ts'
import { configOptions } from '../serve.ts'

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Check a data folder, or a running server',
  options: {
    running: { help: 'Advise on the running server instead' },
    json: { help: 'Print the advice as JSON' },
    url: { value: '<address>', help: 'Any node of the running server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `Checks, without changing anything, that every database exists with its log and passes
SQLite's integrity check, that the change log has no gaps, and that every referenced
file exists with the right size. Prints the number of records of each table.
The server must not be running. Exits with 0 if no problems were found, else with 1.

With DATABASE_URL the data is in PostgreSQL, which has tools of its own (pg_amcheck).

With --running, or --url, the running server says what an operator should look at, as on the
first page of the dashboard: open rules, missing indexes, slow statements, expiring keys,
backups, clocks and disk space. Exits with 1 if something is of high severity.`,
  run(call) {
    const { options, terminal } = call
    if (options.running !== undefined || options.url !== undefined) return printAdvice(call)
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
