/** `plinth types`: writes the types of a configuration for clients that cannot import it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readProjectFunctions } from '../../app/project-functions.ts'
import { findServiceKey, loadConfig, readEnvironment } from '../../config/load.ts'
import { ApiError, apiError } from '../../errors.ts'
import type { SchemaDescription } from '../../features/system/schema.ts'
import { createAdminCall, parseAddress } from '../admin-call.ts'
import type { Command } from '../command.ts'
import { describeTypes, formatDeclarations, type TypeSource } from '../type-declarations.ts'

export const typesCommand: Command = {
  name: 'types',
  summary: 'Write the types of a configuration for clients',
  options: {
    url: { value: '<address>', help: 'A server to read them from (default: the configuration)' },
    config: { value: '<file>', help: 'The configuration (default plinth.config.ts)' },
    out: { value: '<file>', help: 'The declaration file (default plinth.d.ts)' },
  },
  details: `Writes one declaration file without imports, for programs in other repositories:
createClient<import('./plinth').Config>(url, …). Programs beside the configuration
use \`typeof config\`, which also types what the handlers of rooms take and return.

Functions are written as \`Functions\`: createClient<Config, Functions>(url, …). Their inputs
and results have types where the schemas \`input\` and \`output\` express them.

With --url the types come from the server's /api/schema, which its configuration
enables with api.schemaEndpoint; with 'authenticated' give PLINTH_SERVICE_KEY.`,
  async run({ options, terminal }) {
    const { url, config, out = 'plinth.d.ts' } = options
    const source = url === undefined ? await readConfig(config) : await readServer(parseAddress(url))
    const text = formatDeclarations(source)
    if (existsSync(out) && readFileSync(out, 'utf8') === text) {
      terminal.out(`${out} is up to date.`)
      return 0
    }
    mkdirSync(dirname(resolve(out)), { recursive: true })
    writeFileSync(out, text)
    terminal.out(`Wrote ${out}`)
    return 0
  },
}

async function readConfig(path: string | undefined): Promise<TypeSource> {
  const file = resolve(path || 'plinth.config.ts')
  const { config } = await loadConfig(file, 'development', '')
  return describeTypes(config, await readProjectFunctions(config, dirname(file), readEnvironment()))
}

async function readServer(url: string): Promise<TypeSource> {
  const silent = `No Plinth server answers at ${url}.`
  const call = createAdminCall({ url, base: '/api', serviceKey: findServiceKey(), silent })
  try {
    return await call<SchemaDescription>('GET', '/schema')
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    const hint = `The server at ${url} does not show its schema: set api.schemaEndpoint in its configuration.`
    throw apiError('not-found', hint)
  }
}
