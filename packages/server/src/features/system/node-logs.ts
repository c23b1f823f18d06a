/**
 * The recent log lines of all nodes: each keeps its own and answers the others. Pages are merged by time; within a node
 * lines keep their order, whatever its clock did.
 */
import type { Log } from '../../base/log.ts'
import type { LogFilter, LogLine, RecentLog } from '../../base/recent-log.ts'
import { logNodesMax, peerLogBytesMax, peerLogLinesMax } from '../../limits/jobs.ts'

export interface LogNode {
  /** Of this run of its process. */
  readonly id: string
  readonly host: string
}

/** Of each node by `nodeKeyOf`: only lines before this position. */
export type LogPositions = Readonly<Record<string, number>>

export interface LogQuestion {
  readonly filter: LogFilter
  /** Only lines of this node; null for all. */
  readonly nodeId: string | null
  /** Null for the first page; then only nodes that are in it have older lines. */
  readonly before: LogPositions | null
  readonly limit: number
  /** Of the lines of the node that answers the client. */
  readonly bytesMax: number
}

export interface LogAnswer {
  readonly node: LogNode
  /** Newest first. */
  readonly lines: readonly LogLine[]
  readonly hasMore: boolean
}

/** What all nodes that answer in time have; this node comes first. */
export type QueryLogs = (question: LogQuestion) => Promise<readonly LogAnswer[]>

/** Short enough for a cursor over many nodes. */
export const nodeKeyOf = ({ id }: LogNode): string => id.slice(0, 13)

/** Answers for this node. `isOwn`: to itself, which needs no bound of messages. */
export const createLogAnswer =
  (node: LogNode, recentLog: RecentLog, log: Pick<Log, 'flush'>) =>
  async ({ filter, nodeId, before, limit, bytesMax }: LogQuestion, isOwn: boolean): Promise<LogAnswer> => {
    const position = before === null ? null : before[nodeKeyOf(node)]
    if (position === undefined || (nodeId !== null && nodeId !== node.id)) return { node, lines: [], hasMore: false }
    log.flush()
    const bounds = isOwn
      ? { limit, bytesMax }
      : { limit: Math.min(limit, peerLogLinesMax), bytesMax: Math.min(bytesMax, peerLogBytesMax) }
    return { node, ...(await recentLog.find(filter, { before: position, ...bounds })) }
  }

export interface NodeLine extends LogLine {
  readonly node: LogNode
}

export interface MergedLogs {
  /** Newest first. */
  readonly lines: readonly NodeLine[]
  /** Where older lines of each node begin; null where no node has any. */
  readonly before: LogPositions | null
}

/** An answer, and how many of its lines were taken. */
interface Taken extends LogAnswer {
  count: number
}

/** The answer whose next line is the newest; null where none has one, or where the next line of one is unknown. */
function nextOf(answers: readonly Taken[]): Taken | null {
  let next: Taken | null = null
  for (const one of answers) {
    const line = one.lines[one.count]
    if (!line) {
      if (one.hasMore) return null
      continue
    }
    if (!next || line.atMs > (next.lines[next.count]?.atMs ?? 0)) next = one
  }
  return next
}

/** Older lines of a node begin before its last taken line, or at its first one. */
const positionOf = ({ lines, count }: Taken): number | undefined =>
  count > 0 ? lines[count - 1]?.position : lines[0] && lines[0].position + 1

/** At most `limit` lines, and no more bytes than the bound except for the first line. */
export function mergeLogs(
  answers: readonly LogAnswer[],
  { limit, bytesMax }: Pick<LogQuestion, 'limit' | 'bytesMax'>,
): MergedLogs {
  const taken = answers.slice(0, logNodesMax).map((answer): Taken => ({ ...answer, count: 0 }))
  const lines: NodeLine[] = []
  let bytes = 0
  for (let next = nextOf(taken); next && lines.length < limit; next = nextOf(taken)) {
    const line = next.lines[next.count] as LogLine
    bytes += Buffer.byteLength(JSON.stringify(line.fields)) + Buffer.byteLength(JSON.stringify(next.node))
    if (lines.length > 0 && bytes > bytesMax) break
    lines.push({ ...line, node: next.node })
    next.count += 1
  }
  const rest = taken.flatMap((one): [string, number][] => {
    const position = one.hasMore || one.count < one.lines.length ? positionOf(one) : undefined
    return position === undefined ? [] : [[nodeKeyOf(one.node), position]]
  })
  return { lines, before: rest.length === 0 ? null : Object.fromEntries(rest) }
}
