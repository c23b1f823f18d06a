/** `plinth secrets`: the stored secrets of server code. */
import { openData } from '../../app.ts'
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import type { Config, Settings } from '../../config/config.ts'
import { type LoadOptions, load } from '../../config/load.ts'
import { EngineError } from '../../engines/sql/error.ts'
import { notFound } from '../../errors.ts'
import { createSecretStore, type ListedSecret } from '../../features/functions/secrets/secret-store.ts'
import { createAdminCall } from '../admin-call.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { readSecret } from '../prompt.ts'
import { configOptions } from '../serve.ts'
import { findAddress } from '../served-address.ts'

export const secretsCommand: Command = {
  name: 'secrets',
  summary: 'Set, list or remove the secrets of server code',
  operands: ['<action>', '[name]'],
  options: configOptions,
  details: `Actions:
  list             Names and times of the last change; never values
  set <name>       Store a value, read from standard input or asked for; it is encrypted
                   with a key derived from PLINTH_SECRET
  remove <name>    Delete it

Code declares \`secret('NAME')\` and reads \`ctx.secrets.NAME\`. An environment variable of
the same name wins. A running server uses a new value within ten seconds.`,
  run,
}

interface Secrets {
  list(): Promise<readonly ListedSecret[]>
  set(name: string, value: string): Promise<unknown>
  /** Throws 404 if there is none. */
  remove(name: string): Promise<unknown>
  close(): Promise<void>
}

/** Opens the databases, or calls the server that has locked the data folder. */
async function openSecrets(options: LoadOptions, terminal: Terminal): Promise<Secrets> {
  const { config, settings } = await load(options, 'release')
  try {
    return await openStored(config, settings, terminal)
  } catch (error) {
    const isServed = error instanceof EngineError && error.kind === 'unavailable' && settings.databaseUrl === null
    const url = isServed ? await findAddress(settings.dataFolder) : null
    if (url === null) throw error
    return openServed(url, settings.serviceKey)
  }
}

async function openStored(config: Config, settings: Settings, terminal: Terminal): Promise<Secrets> {
  const log = createLog({ level: 'error', format: 'pretty', write: (text) => terminal.error(text.trimEnd()) })
  const { sql } = await openData({ config, settings, log })
  const store = createSecretStore({ sql, secret: settings.secret, environment: {}, clock: systemClock })
  return {
    list: store.list,
    set: store.set,
    async remove(name) {
      if (!(await store.remove(name))) throw notFound('Secret')
    },
    close: () => sql.close(),
  }
}

function openServed(url: string, serviceKey: string): Secrets {
  const silent = `The server at ${url}, which has this data folder, does not answer.`
  const call = createAdminCall({ url, base: '/api/functions/secrets', serviceKey, silent })
  const pathOf = (name: string): string => `/${encodeURIComponent(name)}`
  return {
    list: async () => (await call<{ secrets: readonly ListedSecret[] }>('GET', '')).secrets,
    set: (name, value) => call('PUT', pathOf(name), { value }),
    remove: (name) => call('DELETE', pathOf(name)),
    close: async () => {},
  }
}

async function run({ operands: [action = '', name], options, terminal }: Call): Promise<number> {
  if (!['list', 'set', 'remove'].includes(action))
    throw new UsageError(`"${action}" is not an action of \`plinth secrets\`. Available: list, set, remove.`)
  if (action !== 'list' && name === undefined) throw new UsageError(`\`plinth secrets ${action}\` needs <name>.`)
  if (action === 'list' && name !== undefined) throw new UsageError('`plinth secrets list` takes no name.')
  const value = action === 'set' ? await readSecret('Value: ') : ''
  const secrets = await openSecrets(options, terminal)
  try {
    if (action === 'list')
      for (const secret of await secrets.list()) terminal.out(`${secret.name}  ${secret.updatedAt}`)
    if (action === 'set') await secrets.set(name as string, value)
    if (action === 'remove') await secrets.remove(name as string)
    if (action !== 'list') terminal.out(`${name} is ${action === 'set' ? 'stored' : 'removed'}.`)
    return 0
  } finally {
    await secrets.close()
  }
}
