/** SQL databases. Resolves the database of a call and formats its response; the engine isolates statements. */

import { type Sandbox, type Sandboxes, type SandboxLimits, StatementError } from '../../engines/sandbox/sandbox.ts'
import { badRequest, invalidField, notFound, quotaExceeded } from '../../errors.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { jsonText } from '../../http/replies/reply.ts'
import { sqlAnswerBytesMax } from '../../limits/resources.ts'
import type { Feature } from '../feature.ts'
import { type StatementCall, sqlEndpoints } from './endpoints.ts'

/** Limits by database name, without the response bound, which applies to all databases. */
type Declared = ReadonlyMap<string, Omit<SandboxLimits, 'answerBytesMax'>>

interface Opened {
  readonly limits: SandboxLimits
  readonly sandbox: Sandbox
  /** Running statements. */
  readonly running: Set<Promise<unknown>>
}

const isSame = (a: SandboxLimits, b: SandboxLimits): boolean =>
  a.timeoutMs === b.timeoutMs &&
  a.rowsMax === b.rowsMax &&
  a.bytesMax === b.bytesMax &&
  a.answerBytesMax === b.answerBytesMax

/** Rounds milliseconds to microseconds. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** Serves no database before `configure`. Must be closed. */
export function createSqlDatabases(sandboxes: Sandboxes): Feature {
  let databases: ReadonlyMap<string, Opened> = new Map()

  async function exec({ params, body }: StatementCall) {
    const database = databases.get(params.database ?? '')
    if (!database) throw notFound('SQL database')
    const run = database.sandbox.run(body.query, body.params)
    database.running.add(run)
    try {
      const { rows, changes, rowsRead, rowsWritten, durationMs } = await run
      const meta = { changes, duration: rounded(durationMs), rows_read: rowsRead, rows_written: rowsWritten }
      return jsonText(`{"results":${rows},"meta":${JSON.stringify(meta)}}`)
    } catch (error) {
      throw error instanceof StatementError ? apiErrorOf(error) : error
    } finally {
      database.running.delete(run)
    }
  }

  const closeAll = (some: Iterable<Opened>): Promise<unknown> =>
    Promise.all([...some].map(({ sandbox }) => sandbox.close()))

  /** Serves these databases only. On failure the previous ones stay in service. Data is never removed. */
  async function replace(wanted: Declared, responseBytes: number): Promise<void> {
    const answerBytesMax = Math.min(sqlAnswerBytesMax, itemBytesMax(responseBytes))
    const next = new Map([...wanted].map(([name, limits]) => [name, { ...limits, answerBytesMax }]))
    const kept = new Map([...databases].filter(([name, { limits }]) => isSame(next.get(name) ?? none, limits)))
    const opened = new Map<string, Opened>()
    try {
      for (const [name, limits] of next)
        if (!kept.has(name))
          opened.set(name, { limits, sandbox: await sandboxes.open(name, limits), running: new Set() })
    } catch (error) {
      await closeAll(opened.values())
      throw error
    }
    const ended = [...databases].filter(([name]) => !kept.has(name)).map(([, one]) => one)
    databases = new Map([...kept, ...opened])
    // Not awaited: running statements finish normally.
    for (const one of ended) void Promise.allSettled(one.running).then(() => one.sandbox.close())
  }

  return {
    name: 'sql',
    endpoints: sqlEndpoints({ exec }),
    configure: (next) => replace(next.sql, next.limits.responseBytes),
    async close() {
      await closeAll(databases.values())
    },
  }
}

/** Placeholder that equals no real limits. */
const none: SandboxLimits = { timeoutMs: 0, rowsMax: 0, bytesMax: 0, answerBytesMax: 0 }

function apiErrorOf({ kind, message }: StatementError): Error {
  switch (kind) {
    case 'params':
      return invalidField('params', 'type', message)
    case 'full':
      return quotaExceeded('The database')
    case 'query':
      return badRequest(message)
  }
}
