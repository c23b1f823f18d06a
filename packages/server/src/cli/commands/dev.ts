/** `plinth dev`: development mode with hot reload. Prints addresses and first commands to try. */
import { basename, dirname, join, relative } from 'node:path'
import type { Config } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { type ConfigWatch, watchConfig } from '../../config/watch.ts'
import { builtInFieldNames, type Field, type FieldType, type Table } from '../../query/table.ts'
import { type Command, formatRows, type Terminal } from '../command.ts'
import { describeFailure } from '../failure.ts'
import { readyLine, type Serving, serve, serveOptions } from '../serve.ts'
import { watchFunctions } from '../watch-functions.ts'

export const devCommand: Command = {
  name: 'dev',
  summary: 'Serve in development mode and reload configuration and functions on change',
  options: serveOptions('127.0.0.1'),
  details: `Access rules apply as in release mode. Rate limits are generous, pages on localhost may
call the server, and changes of the configuration and of functions are applied at once;
what is invalid is reported, and the previous state remains active. Environment variables are those of \`plinth start\`.`,
  run: ({ options, terminal }) =>
    serve({
      mode: 'development',
      options,
      terminal,
      showsSetupLink: true,
      onReady(serving) {
        terminal.out(formatWelcome(serving))
        const watches = [watch(serving, terminal), watchCode(serving, terminal)]
        return {
          close() {
            for (const one of watches) one.close()
          },
        }
      },
    }),
}

/** Applies every change of the configuration until closed. */
export function watch({ app, loaded, log }: Omit<Serving, 'setupLink'>, terminal: Terminal): ConfigWatch {
  const name = basename(loaded.path)
  return watchConfig({
    files: loaded.files,
    load: () => loadConfig(loaded.path, 'development', loaded.settings.serviceKey),
    apply: (config) => app.reload(config),
    onReload({ warnings }) {
      log.info('config.reloaded', { file: name })
      for (const warning of warnings) log.warn('config.warning', { warning })
    },
    onFailure(error) {
      // Not a log line, because the list of errors has many lines.
      log.flush()
      terminal.error(`${name} has changed and is invalid; the previous one remains active:\n${describeFailure(error)}`)
    },
  })
}

/** Serves every change of the functions until closed. */
function watchCode({ app, loaded, log }: Serving, terminal: Terminal): { close(): void } {
  return watchFunctions({
    folder: join(dirname(loaded.path), loaded.config.functions.folder),
    files: () => app.functionFiles,
    reload: () => app.reloadFunctions(),
    onReload: () => log.flush(),
    onFailure(error) {
      log.flush()
      terminal.error(`The functions have changed; the previous code remains active:\n${describeFailure(error)}`)
    },
  })
}

/** The text printed after the start. */
export function formatWelcome({ app, loaded, setupLink }: Serving): string {
  const { config, settings, path } = loaded
  const rows = formatRows([
    ['Service key', settings.serviceKey],
    ['Data', relative('.', settings.dataFolder) || '.'],
    ['Configuration', `${relative('.', path)} (watched)`],
    ['API', `${app.url}/docs`],
    ...(config.dashboard === null ? [] : [['Dashboard', `${app.url}/dashboard`] as const]),
    ...(setupLink === null ? [] : [['First admin', setupLink] as const]),
  ])
  const tries = [`curl ${app.url}/api/health`]
  const found = findTable(config)
  if (found) {
    const key = `-H 'X-Platform-Service-Key: ${settings.serviceKey}'`
    const url = `${app.url}/api/db/${found.namespace}/tables/${found.name}`
    const sample = findSample(found)
    tries.push(`curl ${key} ${url}`)
    if (sample !== null) tries.push(`curl ${key} -H 'Content-Type: application/json' -d '${sample}' ${url}`)
  }
  return [readyLine(app.url), '', rows, '', 'First things to try:', ...tries.map((line) => `  ${line}`), ''].join('\n')
}

/** A table of a namespace without instances. */
function findTable({ namespaces }: Config): Table | null {
  for (const { instance, tables } of namespaces.values()) {
    const [first] = tables.values()
    if (!instance && first) return first.table
  }
  return null
}

/** A valid record as JSON for single quotes in a shell; null if none can be generated. */
function findSample({ fields }: Table): string | null {
  const sample: Record<string, unknown> = {}
  for (const field of fields.values()) {
    if (!field.required || field.default !== undefined || builtInFieldNames.has(field.name)) continue
    if (!takesSample(field)) return null
    sample[field.name] = field.enum?.[0] ?? samples[field.type]
  }
  const json = JSON.stringify(sample)
  return json.includes("'") ? null : json
}

const samples: Readonly<Record<FieldType, unknown>> = {
  string: 'first',
  text: 'first',
  number: 1,
  boolean: true,
  datetime: '2026-01-31T12:00:00.000Z',
  json: {},
  geo: [13.4, 52.5],
}

/** Whether the sample value satisfies the field's constraints. */
function takesSample({ type, pattern, references, min = 0, max = Number.POSITIVE_INFINITY }: Field): boolean {
  if (pattern || references !== undefined) return false
  const size = type === 'number' ? 1 : 'first'.length
  return min <= size && size <= max
}
