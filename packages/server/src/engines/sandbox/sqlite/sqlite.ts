/**
 * SQL databases of the embedded engine: one SQLite file each; statements run in child processes. Owns the files and the
 * lanes: writes run one at a time in one process, reads in parallel in a few others.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { withHandles } from '../../../base/files/open-files.ts'
import { sqlProcessIdleMs, sqlReadsAtOnceMax, sqlWaiting } from '../../../limits/resources.ts'
import { rememberIdentity } from '../../disk/folder-identity.ts'
import { createProcessPool } from '../../processes/process-pool.ts'
import { createEngineQueue } from '../../sql/engine-queue.ts'
import { EngineError } from '../../sql/error.ts'
import { openConnection } from '../../sqlite/connection.ts'
import type { Sandbox, SandboxAnswer, Sandboxes, SandboxLimits, SandboxValue } from '../sandbox.ts'
import { keywordsOf, parseStatement } from '../statement.ts'
import type { Token } from '../tokenizer.ts'
import type { SandboxLane } from './confined.ts'
import { SandboxProcess } from './process.ts'

/** Whether a statement is certain to only read. Otherwise it runs in the write lane. */
function onlyReads(tokens: readonly Token[]): boolean {
  const words = keywordsOf(tokens)
  return (
    ['select', 'values', 'with', 'explain'].includes(words[0] ?? '') &&
    !words.some((word) => ['insert', 'update', 'delete', 'replace'].includes(word))
  )
}

/** A lane: processes that run the same kind of statement, with bounded concurrency, round robin over callers. */
function createLane(path: string, limits: SandboxLimits, lane: SandboxLane, running: number) {
  const queue = createEngineQueue('statements', { running, ...sqlWaiting })
  const pool = createProcessPool({ start: () => new SandboxProcess(path, limits, lane), idleMs: sqlProcessIdleMs })
  return {
    run: (request: { query: string; params: readonly SandboxValue[] }, caller: string): Promise<SandboxAnswer> =>
      queue.enter(caller, () => pool.use((process) => process.run(request))),
    close: () => pool.close(),
  }
}

/** `folder` holds one file per database. */
export function createSqliteSandboxes({ folder }: { readonly folder: string }): Sandboxes {
  return {
    async open(name, limits): Promise<Sandbox> {
      mkdirSync(folder, { recursive: true })
      const path = join(folder, `${name}.sqlite`)
      // Created here, so that processes that start together find it.
      try {
        withHandles(() => openConnection(path, { small: true }).close())
      } catch (error) {
        const { message } = error as Error
        throw new EngineError('unavailable', `The SQL database "${name}" cannot be opened: ${message}`, [], error)
      }
      const checkIdentity = rememberIdentity(`sql/${name}.sqlite`, [path])
      const reads = createLane(path, limits, 'reads', sqlReadsAtOnceMax)
      const writes = createLane(path, limits, 'writes', 1)
      return {
        async run(query, params, caller) {
          const { tokens } = parseStatement(query, params, 'sqlite')
          if (onlyReads(tokens)) return reads.run({ query, params }, caller)
          const answer = await writes.run({ query, params }, caller)
          // A file without a name is lost with the process: writes to it must not be acknowledged.
          checkIdentity()
          return answer
        },
        async close() {
          await Promise.all([reads.close(), writes.close()])
        },
      }
    },
  }
}
