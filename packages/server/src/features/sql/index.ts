/**
 * SQL databases: SPEC's "SQL database" under Native resources. This factory finds the database that a call names and
 * puts its answer into the API's words; keeping statements in is the engine's.
 */

import { type Sandbox, type Sandboxes, type SandboxLimits, StatementError } from '../../engines/sandbox/sandbox.ts'
import { badRequest, invalidField, notFound, quotaExceeded } from '../../errors.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { jsonText } from '../../http/replies/reply.ts'
import { sqlAnswerBytesMax } from '../../limits/resources.ts'
import type { Feature } from '../feature.ts'
import { type StatementCall, sqlEndpoints } from './endpoints.ts'

/** By name; what a response may have is no matter of one database. */
type Declared = ReadonlyMap<string, Omit<SandboxLimits, 'answerBytesMax'>>

interface Opened {
  readonly limits: SandboxLimits
  readonly sandbox: Sandbox
  /** What is asked of it just now. */
  readonly running: Set<Promise<unknown>>
}

const isSame = (a: SandboxLimits, b: SandboxLimits): boolean =>
  a.timeoutMs === b.timeoutMs &&
  a.rowsMax === b.rowsMax &&
  a.bytesMax === b.bytesMax &&
  a.answerBytesMax === b.answerBytesMax

/** Milliseconds to the microsecond. */
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
      throw error instanceof StatementError ? refusalOf(error) : error
    } finally {
      database.running.delete(run)
    }
  }

  const closeAll = (some: Iterable<Opened>): Promise<unknown> =>
    Promise.all([...some].map(({ sandbox }) => sandbox.close()))

  /** Serves these databases and no others. Throws with the previous ones still served. Their data always stays. */
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
    // Not waited for: what runs in them may end as it would have.
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

/** Limits that nothing has. */
const none: SandboxLimits = { timeoutMs: 0, rowsMax: 0, bytesMax: 0, answerBytesMax: 0 }

function refusalOf({ kind, message }: StatementError): Error {
  switch (kind) {
    case 'params':
      return invalidField('params', 'type', message)
    case 'full':
      return quotaExceeded('The database')
    case 'query':
      return badRequest(message)
  }
}
