/**
 * Forms the groups of writes that share a transaction, per table. A few groups of a table run at a time: a write that
 * arrives while none does starts one at once, and under load those that arrive meanwhile form the next.
 */
import { startAdaptively } from '../../../base/batching/adaptive-batch.ts'
import {
  postgresTableShare,
  postgresWaitMs,
  sharedGroupStep,
  sharedGroupsAnySize,
  sharedGroupsMax,
  sharedGrowth,
  sharedWritesMax,
} from '../../../limits/postgres.ts'
import { writeQueueOperationsMax } from '../../../limits/sqlite.ts'
import { writeGroupWaitMs } from '../../../limits/writes.ts'
import { EngineError } from '../../sql/error.ts'
import type { Connections } from '../connections.ts'
import type { PreparedConnection } from '../prepared-connection.ts'
import type { Statements } from '../statements.ts'
import { type Member, rowKeyOf, runGroup } from './group.ts'

export interface SharedWritesDeps {
  readonly connections: Connections
  readonly statements: Statements
  /** Runs a write in a transaction of its own, and reports its outcome. */
  readonly runAlone: (line: PreparedConnection, member: Member) => Promise<void>
}

export interface SharedWrites {
  /** Queues a write for a group. Throws `EngineError` `busy` if too many wait. */
  add(member: Member): void
}

interface Waiting {
  readonly member: Member
  readonly sinceMs: number
}

/** The writes of a table. */
interface Queue {
  waiting: Waiting[]
  groups: number
  isScheduled: boolean
  /** Writes of a group: fewer after a group that failed, since all of its writes run again. */
  size: number
  /** Rows that groups in progress write: the next writes of a row follow in a later group. */
  readonly rows: Set<string>
}

const grow = (queue: Queue): void => {
  queue.size = Math.min(sharedWritesMax, queue.size + sharedGrowth)
}

const waitingMax = Math.floor(writeQueueOperationsMax * postgresTableShare)

/** Whether another group may start: beyond the first ones only a large one, the larger the more are in progress. */
function isDue({ groups, waiting }: Queue): boolean {
  if (waiting.length === 0 || groups >= sharedGroupsMax) return false
  return waiting.length >= (groups + 1 - sharedGroupsAnySize) * sharedGroupStep
}

export function createSharedWrites({ connections, statements, runAlone }: SharedWritesDeps): SharedWrites {
  const queues = new Map<string, Queue>()

  function queueOf(key: string): Queue {
    let queue = queues.get(key)
    if (!queue) {
      queue = { waiting: [], groups: 0, isScheduled: false, size: sharedWritesMax, rows: new Set() }
      queues.set(key, queue)
    }
    return queue
  }

  /** A group starts with the writes of this tick, and of those after it while each brings some. */
  function schedule(key: string, queue: Queue): void {
    if (queue.isScheduled || !isDue(queue)) return
    queue.isScheduled = true
    const size = (): number => queue.waiting.length
    startAdaptively({ size, sizeMax: queue.size, waitMs: writeGroupWaitMs }, () => {
      queue.isScheduled = false
      const members = takeGroup(queue)
      if (members.length > 0) void start(key, queue, members)
    })
  }

  /** The longest waiting writes whose rows no group in progress writes. */
  function takeGroup(queue: Queue): Member[] {
    const tooOldMs = performance.now() - postgresWaitMs
    const members: Member[] = []
    const left: Waiting[] = []
    for (const one of queue.waiting) {
      const row = rowKeyOf(one.member)
      if (members.length >= queue.size || (row !== null && queue.rows.has(row))) {
        if (one.sinceMs > tooOldMs) left.push(one)
        else one.member.reject(new EngineError('busy', 'A write waited too long for a transaction'))
      } else members.push(one.member)
    }
    queue.waiting = left
    return members
  }

  async function start(key: string, queue: Queue, members: readonly Member[]): Promise<void> {
    const rows = members.map(rowKeyOf).filter((row) => row !== null)
    queue.groups += 1
    for (const row of rows) queue.rows.add(row)
    // Those that are not in this group.
    schedule(key, queue)
    try {
      await connections.withOwn(key, (line) => run(line, queue, members))
    } catch (error) {
      // No connection: nothing has run.
      for (const member of members) member.reject(error)
    } finally {
      queue.groups -= 1
      for (const row of rows) queue.rows.delete(row)
      if (queue.groups === 0 && queue.waiting.length === 0 && queue.size === sharedWritesMax) queues.delete(key)
      else schedule(key, queue)
    }
  }

  async function run(line: PreparedConnection, queue: Queue, members: readonly Member[]): Promise<void> {
    const [only] = members
    if (members.length === 1 && only) {
      await runAlone(line, only)
      grow(queue)
      return
    }
    const { hasCommitted, rest } = await runGroup(line, statements, members)
    const nowMs = performance.now()
    queue.waiting.unshift(...rest.map((member) => ({ member, sinceMs: nowMs })))
    if (hasCommitted) grow(queue)
    else queue.size = Math.max(1, Math.floor(queue.size / 2))
  }

  return {
    add(member) {
      const queue = queueOf(member.key)
      if (queue.waiting.length >= waitingMax) throw new EngineError('busy', 'Too many writes of one table are waiting')
      queue.waiting.push({ member, sinceMs: performance.now() })
      schedule(member.key, queue)
    },
  }
}
