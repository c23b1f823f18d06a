/** The endpoint of the recent log lines of all nodes. */
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, datetimeParam, limitParam, wordParamOr } from '../../http/input/query-schema.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { logLinesListed, logLinesListedMax, logTextCharsMax } from '../../limits/jobs.ts'
import { nodeAnswerMs } from '../../limits/redis.ts'
import { logLevels } from '../../log-events/log-event.ts'
import { type LogPositions, mergeLogs, type NodeLine, type QueryLogs } from './node-logs.ts'

export interface LogsParts {
  readonly queryLogs: QueryLogs
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes; a single line may exceed it. */
  readonly responseBytes: () => number
}

const logsScope = 'system:logs:*:read'

const text = (description: string) => z.string().min(1).max(logTextCharsMax).optional().meta({ description })

const querySchema = z.object({
  level: wordParamOr(logLevels, 'debug', 'The least level'),
  event: text('Only lines of this event, such as `http.request`'),
  requestId: text('Only lines of this request'),
  q: text('Only lines that contain this text, without regard to case'),
  from: datetimeParam('Only lines from this time on'),
  to: datetimeParam('Only lines before this time'),
  node: text('Only lines of the node with this id'),
  limit: limitParam({ default: logLinesListed, max: logLinesListedMax }),
  cursor: cursorParam(),
})

const nodeSchema = z.object({
  id: z.string().meta({ description: 'Of this run of its process' }),
  host: z.string(),
})

const lineSchema = z.object({
  at: z.iso.datetime(),
  level: z.enum(logLevels),
  event: z.string(),
  requestId: z.string().nullable(),
  fields: z.record(z.string(), z.unknown()).meta({ description: 'All fields of the event, `requestId` included' }),
  node: nodeSchema,
})

const format = ({ atMs, level, event, fields, node }: NodeLine): z.output<typeof lineSchema> => ({
  at: formatDatetime(atMs),
  level,
  event,
  requestId: typeof fields.requestId === 'string' ? fields.requestId : null,
  fields,
  node,
})

/** Keys of nodes and positions, in turns. */
type Cursor = (string | number)[]

const formatCursor = (before: LogPositions): Cursor => Object.entries(before).flat()

const parseCursor = (cursor: Cursor): LogPositions =>
  Object.fromEntries(cursor.flatMap((key, at) => (at % 2 === 0 ? [[String(key), Number(cursor[at + 1])]] : [])))

export function createLogsEndpoint({ queryLogs, secret, responseBytes }: LogsParts): Endpoint {
  const cursors = createListCursors<Cursor>(secret, 'system logs')
  return endpoint({
    name: 'system.logs',
    method: 'GET',
    paths: ['/api/logs'],
    tag: 'System',
    summary: 'Search the recent log lines of all nodes',
    description: `The lines that the nodes keep in memory, about the last 4 MiB of each, newest first, from the level on that they log. Lines of nodes that do not answer within ${nodeAnswerMs} ms are missing. Fields named like a secret are \`[hidden]\`.`,
    credentials: 'service',
    scope: () => logsScope,
    rateLimit: 'global',
    query: querySchema,
    replies: {
      200: {
        description:
          '`cursor` continues with older lines of the same nodes; null on the last page, and after a restart of the nodes. `nodes` have answered; the one that responds comes first.',
        schema: z.object({
          items: z.array(lineSchema),
          cursor: z.string().nullable(),
          nodes: z.array(nodeSchema),
        }),
      },
    },
    async handle({ query: { level, event = null, requestId = null, q = null, from, to, node = null, limit, cursor } }) {
      const filter = { level, event, requestId, text: q, fromMs: from ?? null, untilMs: to ?? null }
      const list = [JSON.stringify(filter), node]
      const before = cursor === undefined ? null : parseCursor(cursors.parse(list, cursor))
      const bounds = { limit, bytesMax: itemBytesMax(responseBytes()) }
      const answers = await queryLogs({ filter, nodeId: node, before, ...bounds })
      const merged = mergeLogs(answers, bounds)
      return json({
        items: merged.lines.map(format),
        cursor: merged.before && cursors.format(list, formatCursor(merged.before)),
        nodes: answers.map((answer) => answer.node),
      })
    },
  })
}
