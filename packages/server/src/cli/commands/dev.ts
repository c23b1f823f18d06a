/**
 * `plinth dev`: development mode. Shows where everything is and what to try, and serves a changed configuration at
 * once.
 */
import { basename, relative } from 'node:path'
import type { Config } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { type ConfigWatch, watchConfig } from '../../config/watch.ts'
import { builtInFieldNames, type Field, type FieldType, type Table } from '../../query/table.ts'
import { type Command, formatRows, type Terminal } from '../command.ts'
import { describeFailure } from '../failure.ts'
import { readyLine, type Serving, serve, serveOptions } from '../serve.ts'

export const devCommand: Command = {
  name: 'dev',
  summary: 'Serve in development mode, with the configuration watched',
  options: serveOptions('127.0.0.1'),
  details: `Access rules hold as in release mode. Rate limits are generous, pages on localhost may
call the server, and a changed configuration is served at once; one with mistakes is
reported, and the old one goes on. The environment is that of \`plinth start\`.`,
  run: ({ options, terminal }) =>
    serve({
      mode: 'development',
      options,
      terminal,
      showsSetupLink: true,
      onReady(serving) {
        terminal.out(formatWelcome(serving))
        return watch(serving, terminal)
      },
    }),
}

/** Serves every change of the configuration until closed. */
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
      // Not through the log, whose lines cannot hold the list of mistakes.
      log.flush()
      terminal.error(`${name} has changed and cannot be served; the old one goes on:\n${describeFailure(error)}`)
    },
  })
}

/** What somebody who has just started the server wants to know. */
export function formatWelcome({ app, loaded, setupLink }: Serving): string {
  const { config, settings, path } = loaded
  const places = formatRows([
    ['Service key', settings.serviceKey],
    ['Data', relative('.', settings.dataFolder) || '.'],
    ['Configuration', `${relative('.', path)} (watched)`],
    ['API', `${app.url}/docs`],
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
  return [readyLine(app.url), '', places, '', 'First things to try:', ...tries.map((line) => `  ${line}`), ''].join(
    '\n',
  )
}

/** A table that can be used without knowing an instance. */
function findTable({ namespaces }: Config): Table | null {
  for (const { instance, tables } of namespaces.values()) {
    const [first] = tables.values()
    if (!instance && first) return first.table
  }
  return null
}

/** A record that the table takes, as JSON that stands between single quotes; null where that would need thought. */
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
}

/** Patterns and references are for the reader to meet, bounds where the sample does not. */
function takesSample({ type, pattern, references, min = 0, max = Number.POSITIVE_INFINITY }: Field): boolean {
  if (pattern || references !== undefined) return false
  const size = type === 'number' ? 1 : 'first'.length
  return min <= size && size <= max
}
