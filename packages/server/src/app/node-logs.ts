/** Lets this node answer others that search the log lines of all, and query them. */
import { hostname } from 'node:os'
import { type NodeDirectory, openNodeDirectory } from '../engines/cluster/node-directory.ts'
import { createLogAnswer, type LogAnswer, type LogQuestion } from '../features/system/node-logs.ts'
import type { AppContext } from './context.ts'
import type { Engines } from './engines.ts'

/** Must be closed. */
export function openNodeLogs(
  { settings, recentLog, log }: AppContext,
  engines: Engines,
): NodeDirectory<LogQuestion, LogAnswer> {
  const node = { id: crypto.randomUUID(), host: hostname() }
  return openNodeDirectory({
    channel: 'logs',
    bus: settings.redisUrl === null ? null : engines.cluster,
    own: node.id,
    answer: createLogAnswer(node, recentLog, log),
    log,
  })
}
