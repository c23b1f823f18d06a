/** `plinth functions`: lists the functions, jobs and log lines of a running server, and manages them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../engines/sql/error.ts'
import { functionLogPollMs, recentLinesListedMax } from '../../limits/functions.ts'
import { type AdminCall, createAdminCall } from '../admin-call.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { findRunningServer } from '../running-server.ts'
import { configOptions } from '../serve.ts'

export const functionsCommand: Command = {
  name: 'functions',
  summary: 'List functions, jobs and log lines, retry or cancel a job, or pause a queue',
  operands: ['<action>', '[name]'],
  options: {
    queue: { value: '<name>', help: 'jobs: only those of this queue or function' },
    status: { value: '<word>', help: 'jobs: waiting, running, done, failed or dead' },
    level: { value: '<word>', help: 'logs: the least level: debug, info, warn or error' },
    follow: { help: 'logs: wait for more lines, until Ctrl-C' },
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `Actions:
  list             Every function: name, kind, what runs it, state, last error
  jobs             The latest 200 jobs, the newest first
  retry <job>      Run a dead job again, or a waiting one at once
  cancel <job>     Cancel an unfinished job
  pause <queue>    Start no more jobs of a queue or function
  resume <queue>   Start them again
  logs [function]  The latest log lines and failures that the node keeps in memory

Calls a running server with its service key. For a server on PostgreSQL, give --url and
PLINTH_SERVICE_KEY. Each of several nodes has the lines of what it has run.`,
  run,
}

interface ListedFunction {
  readonly name: string
  readonly kind: string
  readonly trigger: string
  readonly state: string
  readonly lastError: { readonly message: string; readonly location: string | null } | null
}

interface ListedJob {
  readonly id: string
  readonly function: string
  readonly status: string
  readonly attempt: number
  readonly runAt: string
  readonly error: string | null
}

type Work = (call: AdminCall, terminal: Terminal) => Promise<void>
/** Returns the work for a server. */
type Action = (name: string, call: Call) => Work

const describeError = ({ message, location }: NonNullable<ListedFunction['lastError']>): string =>
  location === null ? message : `${message} (${location})`

const list: Action = () => async (call, terminal) => {
  const { items } = await call<{ items: readonly ListedFunction[] }>('GET', '')
  for (const { name, kind, trigger, state, lastError } of items)
    terminal.out([name, kind, trigger, state, ...(lastError ? [describeError(lastError)] : [])].join('  '))
}

const jobs: Action =
  (_, { options: { queue, status } }) =>
  async (call, terminal) => {
    const query = new URLSearchParams({ limit: '200', ...(queue && { queue }), ...(status && { status }) })
    const { items } = await call<{ items: readonly ListedJob[] }>('GET', `/jobs?${query}`)
    for (const { id, function: name, status: state, attempt, runAt, error } of items)
      terminal.out([id, name, state, `attempt ${attempt}`, runAt, ...(error === null ? [] : [error])].join('  '))
  }

interface ListedLine {
  readonly at: string
  readonly level: string
  readonly function: string
  readonly message: string
  readonly data: object | null
  readonly location: string | null
}

interface LinePage {
  readonly items: readonly ListedLine[]
  readonly cursor: string
  readonly gap: boolean
}

const formatLine = ({ at, level, function: name, message, data, location }: ListedLine): string =>
  [at, level, name, message, ...(data ? [JSON.stringify(data)] : []), ...(location ? [location] : [])].join('  ')

const logs: Action =
  (name, { options: { level, follow } }) =>
  async (call, terminal) => {
    let page: LinePage | null = null
    for (;;) {
      const query = new URLSearchParams({
        ...(name && { function: name }),
        ...(level && { level }),
        ...(page && { cursor: page.cursor, limit: String(recentLinesListedMax) }),
      })
      try {
        page = await call<LinePage>('GET', `/logs?${query}`)
        if (page.gap) terminal.error('Lines are missing here: they were dropped, or the server has started again.')
        for (const line of page.items) terminal.out(formatLine(line))
      } catch (error) {
        // The server is starting again.
        if (!page || !(error instanceof EngineError)) throw error
      }
      if (follow === undefined) return
      await sleep(functionLogPollMs)
    }
  }

/** An action on one job or queue. */
const post =
  (path: 'jobs' | 'queues', verb: string, done: string): Action =>
  (name) =>
  async (call, terminal) => {
    await call('POST', `/${path}/${encodeURIComponent(name)}/${verb}`)
    terminal.out(`${name} is ${done}.`)
  }

/** Actions, and what their operand names; in brackets if it may be absent. */
const actions: Readonly<Record<string, readonly [act: Action, needs: string | null]>> = {
  list: [list, null],
  jobs: [jobs, null],
  retry: [post('jobs', 'retry', 'due'), 'job'],
  cancel: [post('jobs', 'cancel', 'canceled'), 'job'],
  pause: [post('queues', 'pause', 'paused'), 'queue'],
  logs: [logs, '[function]'],
  resume: [post('queues', 'resume', 'resumed'), 'queue'],
}

async function run(call: Call): Promise<number> {
  const {
    operands: [action = '', name],
    options,
    terminal,
  } = call
  const found = Object.hasOwn(actions, action) ? actions[action] : undefined
  if (!found)
    throw new UsageError(
      `"${action}" is not an action of \`plinth functions\`. Available: ${Object.keys(actions).join(', ')}.`,
    )
  const [act, needs] = found
  const isOptional = needs?.startsWith('[') ?? false
  if (needs !== null && !isOptional && name === undefined)
    throw new UsageError(`\`plinth functions ${action}\` needs <${needs}>.`)
  if (needs === null && name !== undefined)
    throw new UsageError(`\`plinth functions ${action}\` does not take "${name}".`)
  const work = act(name ?? '', call)
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  await work(createAdminCall({ url, base: '/api/functions', serviceKey, silent }), terminal)
  return 0
}
