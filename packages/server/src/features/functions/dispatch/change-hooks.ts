/** Finds the functions that run for a change, and describes their jobs. */
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Log } from '../../../base/log.ts'
import { functionDepthMax, functionJobKeyCharsMax } from '../../../limits/function-jobs.ts'
import type { Expr } from '../../../query/expr.ts'
import { matches, type Row } from '../../../query/matches.ts'
import type { NewJob } from '../jobs/job.ts'
import { causeOf } from './cause.ts'
import type { Change } from './change-logs.ts'

export type Operation = 'insert' | 'update' | 'delete'

/** A function that runs after changes of a table. */
export interface ChangeHook {
  readonly name: string
  readonly kind: 'onChange' | 'webhook'
  readonly namespace: string
  readonly table: string
  readonly on: ReadonlySet<Operation>
  /** On the row after the change, or before a delete; without `exists`. */
  readonly where: Expr | null
  /** A row as `where` refers to it; as it is if absent. */
  readonly view?: (row: Row) => Row
  /** Whether it also runs for changes that it has caused itself. */
  readonly recursive: boolean
}

/** The jobs of a change. */
export type JobsOf = (change: Change, namespace: string) => readonly NewJob[]

export interface ChangeHooksDeps {
  readonly hooks: readonly ChangeHook[]
  readonly nowMs: () => number
  readonly log: Log
}

export const operationOf = ({ before, after }: Change): Operation =>
  after === null ? 'delete' : before === null ? 'insert' : 'update'

/** The same for the same change in every history: a version is used once per record. */
export const changeIdOf = ({ instanceId, table, id, version }: Change, namespace: string): string =>
  sha256(JSON.stringify([namespace, instanceId, table, id, version])).slice(0, 32)

/** The order of jobs: by record. */
function keyOf({ instanceId, table, id }: Change): string {
  const key = JSON.stringify([instanceId, table, id])
  return key.length > functionJobKeyCharsMax ? sha256(key) : key
}

/** The event that the function gets, as JSON. `attempt` is added when it runs. */
function eventOf(change: Change, operation: Operation, changeId: string): string {
  const { instanceId, afterText, before, atMs } = change
  const instance = instanceId === null ? '' : `"instanceId":${JSON.stringify(instanceId)},`
  const identity = JSON.stringify({ id: changeId, at: new Date(atMs).toISOString() })
  return `{"operation":"${operation}",${instance}"change":${identity},"after":${afterText ?? 'null'},"previous":${JSON.stringify(before)}}`
}

const identity = (row: Row): Row => row

export function createChangeHooks({ hooks, nowMs, log }: ChangeHooksDeps): JobsOf {
  const byTable = Map.groupBy(hooks, ({ namespace, table }) => `${namespace}.${table}`)

  return (change, namespace) => {
    const concerned = byTable.get(`${namespace}.${change.table}`)
    if (!concerned) return []
    const operation = operationOf(change)
    const cause = causeOf(change.requestId)
    const depth = (cause?.depth ?? 0) + 1
    const jobs: NewJob[] = []
    const row = (change.after ?? change.before) as Row
    for (const { name, kind, on, where, view = identity, recursive } of concerned) {
      if (!on.has(operation)) continue
      if (where && !matches(where, view(row))) continue
      if (cause?.function === name && !recursive) continue
      if (depth > functionDepthMax) {
        log.error('functions.loop_stopped', {
          function: name,
          depth,
          record: `${namespace}.${change.table}/${change.id}`,
        })
        continue
      }
      const changeId = changeIdOf(change, namespace)
      jobs.push({
        id: `${changeId}-${name}`,
        function: name,
        kind,
        key: keyOf(change),
        uniqueKey: null,
        input: eventOf(change, operation, changeId),
        runAtMs: nowMs(),
        depth,
      })
    }
    return jobs
  }
}
