/** The endpoint of the server's recent log lines. */
import { z } from 'zod'
import type { Log } from '../../base/log.ts'
import type { LogLine, RecentLog } from '../../base/recent-log.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, datetimeParam, limitParam, wordParamOr } from '../../http/input/query-schema.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { logLinesListed, logLinesListedMax, logTextCharsMax } from '../../limits/jobs.ts'
import { logLevels } from '../../log-events/log-event.ts'

export interface LogsParts {
  readonly recentLog: RecentLog
  readonly log: Pick<Log, 'flush'>
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
  limit: limitParam({ default: logLinesListed, max: logLinesListedMax }),
  cursor: cursorParam(),
})

const lineSchema = z.object({
  at: z.iso.datetime(),
  level: z.enum(logLevels),
  event: z.string(),
  requestId: z.string().nullable(),
  fields: z.record(z.string(), z.unknown()).meta({ description: 'All fields of the event, `requestId` included' }),
})

const format = ({ atMs, level, event, fields }: LogLine): z.output<typeof lineSchema> => ({
  at: formatDatetime(atMs),
  level,
  event,
  requestId: typeof fields.requestId === 'string' ? fields.requestId : null,
  fields,
})

export function createLogsEndpoint({ recentLog, log, secret, responseBytes }: LogsParts): Endpoint {
  const cursors = createListCursors<[process: string, position: number]>(secret, 'system logs')
  /** Positions of lines are those of this process. */
  const process = crypto.randomUUID()
  return endpoint({
    name: 'system.logs',
    method: 'GET',
    paths: ['/api/logs'],
    tag: 'System',
    summary: 'Search the recent log lines of this node',
    description:
      'The lines that this node keeps in memory, about the last 4 MiB, newest first, from the level on that it logs. Fields named like a secret are `[hidden]`.',
    credentials: 'service',
    scope: () => logsScope,
    rateLimit: 'global',
    query: querySchema,
    replies: {
      200: {
        description: '`cursor` continues with older lines; null on the last page, and after a restart of the node',
        schema: z.object({ items: z.array(lineSchema), cursor: z.string().nullable() }),
      },
    },
    async handle({ query: { level, event = null, requestId = null, q = null, from, to, limit, cursor } }) {
      const filter = { level, event, requestId, text: q, fromMs: from ?? null, untilMs: to ?? null }
      const list = [JSON.stringify(filter)]
      const [of, before] = cursor === undefined ? [process, null] : cursors.parse(list, cursor)
      if (of !== process) return json({ items: [], cursor: null })
      log.flush()
      const { lines, hasMore } = await recentLog.find(filter, {
        before,
        limit,
        bytesMax: itemBytesMax(responseBytes()),
      })
      const last = hasMore ? lines.at(-1) : undefined
      return json({ items: lines.map(format), cursor: last ? cursors.format(list, [process, last.position]) : null })
    },
  })
}
