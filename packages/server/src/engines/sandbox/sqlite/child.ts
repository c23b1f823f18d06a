/**
 * Child process, one per lane of an embedded SQL database: runs one statement at a time, confined to its file, and
 * replies over a pipe. It has no secrets. Its parent kills it when a statement exceeds its deadline;
 * `watchdog` kills it when a statement exceeds its memory or the parent is gone.
 */
import { statfsSync } from 'node:fs'
import { setPriority } from 'node:os'
import { sqlDiskFreeBytesMin, sqlProcessBytesMax, sqlProcessNiceness } from '../../../limits/resources.ts'
import { readFrames, sendFrames } from '../../processes/child-pipe.ts'
import { createWatch } from '../../processes/watch-state.ts'
import { type SandboxCounts, type SandboxLimits, type SandboxValue, StatementError } from '../sandbox.ts'
import { ConfinedDatabase, type Ran, type SandboxLane } from './confined.ts'

/** Requests of the parent: run a statement, and, after `ran`, commit it. */
export type ChildRequest = { readonly query: string; readonly params: readonly SandboxValue[] } | 'commit'

/**
 * Replies of the child. The rows follow `done` in a frame of their own. `isSpent`: the process has grown so large that
 * it must be replaced.
 */
export type ChildReply =
  | { readonly kind: 'ready' }
  /** The statement has run; it takes effect with `commit`. */
  | { readonly kind: 'ran' }
  | { readonly kind: 'done'; readonly counts: SandboxCounts; readonly isSpent: boolean }
  | { readonly kind: 'refused'; readonly message: string; readonly isSpent: boolean }
  | { readonly kind: 'full' }
  | { readonly kind: 'diskFull' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'broken'; readonly message: string }

/** Primary result codes of SQLite. */
const codes = { busy: 5, locked: 6, full: 13 } as const
/** I/O errors, a corrupt or replaced file: no statement can succeed. */
const broken: ReadonlySet<number> = new Set([8, 10, 11, 14, 26])

function replyOf(error: unknown): ChildReply {
  if (error instanceof StatementError) return { kind: 'refused', message: error.message, isSpent: isSpent() }
  const { errcode, message } = error as Error & { errcode?: number }
  const code = (errcode ?? 0) & 0xff
  if (code === codes.busy || code === codes.locked) return { kind: 'busy' }
  if (code === codes.full) return { kind: isDiskFull() ? 'diskFull' : 'full' }
  if (errcode === undefined || broken.has(code)) return { kind: 'broken', message }
  return { kind: 'refused', message, isSpent: isSpent() }
}

/** SQLite reports the same code for a database at its size limit and for a full disk. */
function isDiskFull(): boolean {
  const { bavail, bsize } = statfsSync(path ?? '.')
  return bavail * bsize < sqlDiskFreeBytesMin
}

/** Memory is not returned to the system, and must not count against a later, smaller statement. */
const isSpent = (): boolean => process.memoryUsage.rss() > sqlProcessBytesMax / 2

const reply = (message: ChildReply): void => sendFrames(JSON.stringify(message))

function serve(path: string, limits: SandboxLimits, lane: SandboxLane): void {
  const watch = createWatch()
  const database = new ConfinedDatabase(path, limits, lane)
  let ran: Ran | null = null

  function answer({ counts, rows }: Ran): void {
    const done: ChildReply = { kind: 'done', counts, isSpent: isSpent() }
    sendFrames(JSON.stringify(done), rows)
    ran = null
  }

  function handle(request: ChildRequest): void {
    try {
      if (request === 'commit') {
        if (!ran) return
        database.commit()
        answer(ran)
        return
      }
      if (lane === 'writes' && !database.shortenLog()) {
        reply({ kind: 'busy' })
        return
      }
      watch.begin()
      ran = database.run(request.query, request.params)
      // The watchdog must not kill the process from here to the commit.
      watch.end()
      // A read has nothing to roll back, so it needs no commit.
      if (lane === 'reads') answer(ran)
      else reply({ kind: 'ran' })
    } catch (error) {
      ran = null
      database.rollBack()
      reply(replyOf(error))
      watch.end()
    }
  }

  reply({ kind: 'ready' })
  readFrames<ChildRequest>(handle)
  database.close()
}

const [path, limits, lane] = process.argv.slice(2)
if (path !== undefined && limits !== undefined) {
  try {
    setPriority(sqlProcessNiceness)
    serve(path, JSON.parse(limits) as SandboxLimits, lane === 'reads' ? 'reads' : 'writes')
  } catch (error) {
    reply({ kind: 'broken', message: error instanceof Error ? error.message : String(error) })
  }
  process.exit(0)
}
