/** The SQL databases in service: opens and closes them as the configuration declares, and runs their statements. */

import type { Sandbox, SandboxAnswer, Sandboxes, SandboxLimits, SandboxValue } from '../../engines/sandbox/sandbox.ts'
import { notFound } from '../../errors.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { sqlAnswerBytesMax } from '../../limits/resources.ts'

/** Limits by database name, without the response bound, which applies to all databases. */
type Declared = ReadonlyMap<string, Omit<SandboxLimits, 'answerBytesMax'>>

interface Opened {
  readonly limits: SandboxLimits
  readonly sandbox: Sandbox
  /** Running statements. */
  readonly running: Set<Promise<unknown>>
}

const isSame = (a: SandboxLimits | undefined, b: SandboxLimits): boolean =>
  a?.timeoutMs === b.timeoutMs &&
  a.rowsMax === b.rowsMax &&
  a.bytesMax === b.bytesMax &&
  a.answerBytesMax === b.answerBytesMax

const closeAll = async (databases: Iterable<Opened>): Promise<void> => {
  await Promise.all([...databases].map(({ sandbox }) => sandbox.close()))
}

/** Serves no database before the first `replace`. Must be closed. */
export class SqlDatabases {
  readonly #sandboxes: Sandboxes
  #databases: ReadonlyMap<string, Opened> = new Map()

  constructor(sandboxes: Sandboxes) {
    this.#sandboxes = sandboxes
  }

  /** Throws 404 for a database that is not declared, otherwise as `Sandbox.run`. */
  async run(name: string, query: string, params: readonly SandboxValue[], caller: string): Promise<SandboxAnswer> {
    const database = this.#databases.get(name)
    if (!database) throw notFound('SQL database')
    const run = database.sandbox.run(query, params, caller)
    database.running.add(run)
    try {
      return await run
    } finally {
      database.running.delete(run)
    }
  }

  /** Serves these databases only. On failure the previous ones stay in service. Data is never removed. */
  async replace(wanted: Declared, responseBytes: number): Promise<void> {
    const answerBytesMax = Math.min(sqlAnswerBytesMax, itemBytesMax(responseBytes))
    const next = new Map([...wanted].map(([name, limits]) => [name, { ...limits, answerBytesMax }]))
    const kept = new Map([...this.#databases].filter(([name, { limits }]) => isSame(next.get(name), limits)))
    const opened = new Map<string, Opened>()
    try {
      for (const [name, limits] of next)
        if (!kept.has(name))
          opened.set(name, { limits, sandbox: await this.#sandboxes.open(name, limits), running: new Set() })
    } catch (error) {
      await closeAll(opened.values())
      throw error
    }
    const ended = [...this.#databases].filter(([name]) => !kept.has(name)).map(([, one]) => one)
    this.#databases = new Map([...kept, ...opened])
    // Not awaited: running statements finish normally.
    for (const one of ended) void Promise.allSettled(one.running).then(() => one.sandbox.close())
  }

  close(): Promise<void> {
    return closeAll(this.#databases.values())
  }
}
