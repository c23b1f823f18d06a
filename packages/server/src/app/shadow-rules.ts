/**
 * Runs the text of an edited rule for sample callers: in a host process of its own, as functions of the application
 * run, never in the server. The process ends with the run.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../base/log.ts'
import type { Settings } from '../config/config.ts'
import { HostError, LoadError } from '../engines/hosts/hosts.ts'
import { openHosts } from '../engines/open.ts'
import { invalidField, unavailable } from '../errors.ts'
import type { RunRuleSource } from '../features/records/rules/shadow/shadow-run.ts'
import { shadowHostBytes, shadowRuleTimeoutMs, shadowRunsMax } from '../limits/functions.ts'
import { hostEnvironment } from './project-functions.ts'

type Results = Awaited<ReturnType<RunRuleSource>>

/** The filter language as functions that return JSON; `undefined` and the results of rules are written as JSON too. */
const language = `
const node = (filter, members) => ({ $filter: filter, ...members })
const and = (...of) => node('and', { of })
const or = (...of) => node('or', { of })
const not = (of) => node('not', { of })
const exists = (table, where) => node('exists', { table, where })
const where = (field, op, value) => node('where', { field, op, value })
const field = (name) => ({ $field: name })
const encode = (value) =>
  value === undefined ? { $undefined: true }
  : Array.isArray(value) ? value.map(encode)
  : typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, encode(member)]))
  : value
const attempt = (rule, auth) => {
  try {
    const result = typeof rule === 'function' ? rule(auth) : rule
    if (result instanceof Promise) return { error: 'A rule must not be asynchronous', at: null }
    return { result: encode(result || false) }
  } catch (error) {
    const [, line, column] = /index\\.ts:(\\d+):(\\d+)/.exec(String(error?.stack)) ?? []
    const message = error instanceof Error ? error.message : String(error)
    return { error: message, at: line === undefined ? null : { line: Number(line), column: Number(column) } }
  }
}
`

const moduleOf = (source: string): string => `import { functionsFor } from 'plinth/functions'
${language}
const rule: any = (
${source}
)
export const shadow = functionsFor().rpc({ caller: 'service' }, (auths: any) => auths.map((auth: any) => attempt(rule, auth)))
`

/** Lines of the module before the text of the rule. */
const linesBefore = moduleOf('').split('\n').indexOf('const rule: any = (') + 1

/** The line of the rule for a line of the module; what the module itself reports after it is of its last line. */
const lineInRule = (line: number, source: string): number =>
  Math.min(Math.max(line - linesBefore, 1), source.split('\n').length)

/** Messages name lines of the module. */
const describeLoadError = (message: string, source: string): string =>
  message.replaceAll(/\bindex\.ts:(\d+)/g, (_, line) => `line ${lineInRule(Number(line), source)}`)

/** Places in the text of the rule in place of those in the module. */
const withLinesOfRule = (results: Results, source: string): Results =>
  results.map((result) =>
    'error' in result && result.at
      ? { ...result, at: { ...result.at, line: lineInRule(result.at.line, source) } }
      : result,
  )

/** Throws 400 for a text that does not compile or end in time, and 503 where too many run. */
export function createRunRuleSource(environment: Settings['environment']): RunRuleSource {
  let running = 0
  return async (source, auths) => {
    if (running >= shadowRunsMax) throw unavailable(1, 'Too many shadow runs at the same time')
    running += 1
    try {
      return await runRuleSource(source, auths, environment)
    } finally {
      running -= 1
    }
  }
}

async function runRuleSource(
  source: string,
  auths: readonly (object | null)[],
  environment: Settings['environment'],
): ReturnType<RunRuleSource> {
  const folder = await mkdtemp(join(tmpdir(), 'plinth-rule-'))
  const hosts = openHosts({
    size: 1,
    memoryBytes: shadowHostBytes,
    environment: hostEnvironment(environment),
    url: () => 'http://127.0.0.1',
    networks: () => [],
    log: silentLog,
  })
  try {
    const entry = join(folder, 'index.ts')
    await writeFile(entry, moduleOf(source))
    await hosts.load(entry)
    const answered = await hosts.invoke({
      name: 'shadow',
      input: auths,
      context: {
        auth: null,
        callerKind: 'service',
        nowMs: Date.now(),
        idempotencyKey: 'shadow',
        secrets: {},
      },
      timeoutMs: shadowRuleTimeoutMs,
      onRequest: async () => ({ status: 403, headers: {}, body: null }),
      onLog() {},
    })
    if (answered.kind !== 'value') throw invalidField('rule', 'type', 'must be a rule')
    return withLinesOfRule(JSON.parse(answered.json ?? '[]') as Results, source)
  } catch (error) {
    if (error instanceof LoadError || error instanceof HostError)
      throw invalidField(
        'rule',
        'type',
        `does not run: ${describeLoadError(error.message, source).replaceAll(folder, '')}`,
      )
    throw error
  } finally {
    await hosts.close()
    await rm(folder, { recursive: true, force: true })
  }
}
