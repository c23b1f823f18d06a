/**
 * `plinth migrate`: what stands between the data and the configuration, and accepting the losses that can be accepted.
 */
import { openData } from '../app.ts'
import { load } from '../config/load.ts'
import type { Call, Command } from './command.ts'
import { configOptions } from './serve.ts'

export const migrateCommand: Command = {
  name: 'migrate',
  summary: 'Show or accept changes of tables that lose data',
  options: {
    ...configOptions,
    apply: { help: 'Drop the columns of removed fields, with what they hold' },
  },
  details: `Changes that lose nothing (new tables, fields, indexes, search) happen at every start.
A change that would lose data stops the start; this shows all of them and what to do.
The server must not be running. Make a copy of the data folder before you apply.`,
  run: migrate,
}

async function migrate({ options, terminal }: Call): Promise<number> {
  const { config, settings } = await load(options, 'release')
  const { sql, schema } = await openData({ config, settings })
  try {
    if (options.apply !== undefined) {
      await schema.migrate(sql, config.storedNamespaces, { accept: true })
      terminal.out('The data fits the configuration now.')
      return 0
    }
    const refusals = await schema.findRefusals(sql, config.storedNamespaces)
    if (refusals.length === 0) {
      terminal.out('Nothing stands in the way of a start.')
      return 0
    }
    terminal.error(refusals.map(({ message }) => message).join('\n'))
    return 1
  } finally {
    await sql.close()
  }
}
