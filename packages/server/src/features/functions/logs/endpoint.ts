/** The endpoint of the recent log lines of functions. */
import { relative } from 'node:path'
import { z } from '../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, limitParam, textParam, wordParamOr } from '../../../http/input/query-schema.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import { json } from '../../../http/replies/reply.ts'
import { recentLinesListed, recentLinesListedBytes, recentLinesListedMax } from '../../../limits/functions.ts'
import { functionsReadScope, jobsCommon } from '../jobs/job-endpoints.ts'
import { logLevels, type NumberedLine, type RecentLines } from './recent-lines.ts'

export interface LogEndpointDeps {
  readonly lines: RecentLines
  /** Seals cursors. */
  readonly secret: string
  readonly projectFolder: string | null
}

const lineSchema = z.object({
  at: z.iso.datetime(),
  level: z.enum(logLevels),
  function: z.string(),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).nullable().meta({ description: 'The fields of `ctx.log`' }),
  requestId: z.string(),
  location: z.string().nullable().meta({ description: 'File and line of an error' }),
})

export function createLogEndpoint({ lines, secret, projectFolder }: LogEndpointDeps): Endpoint {
  const cursors = createListCursors<[node: string, seq: number]>(secret, 'functions logs')
  /** Numbers of lines are those of this process. */
  const node = crypto.randomUUID()
  const format = ({ atMs, level, function: name, message, data, requestId, location }: NumberedLine) => ({
    at: new Date(atMs).toISOString(),
    level,
    function: name,
    message,
    data,
    requestId,
    location: location && `${relative(projectFolder ?? '', location.file)}:${location.line}`,
  })
  return endpoint({
    ...jobsCommon,
    name: 'functions.logs',
    method: 'GET',
    scope: functionsReadScope,
    paths: ['/api/functions/logs'],
    summary: 'List recent log lines of functions',
    description:
      'The lines that this node keeps in memory, in the order of their time: the latest ones, or those after `cursor`. Values of secrets are replaced. With several nodes, each has the lines of the functions that it has run.',
    query: z.object({
      function: textParam('Only lines of this function'),
      requestId: textParam('Only lines of this request, or of the job with this id'),
      level: wordParamOr(logLevels, 'debug', 'The least level'),
      limit: limitParam({ default: recentLinesListed, max: recentLinesListedMax }),
      cursor: cursorParam('`cursor` of an earlier response: only lines after it'),
    }),
    replies: {
      200: {
        description:
          '`cursor` is that of the lines that follow. `gap` states that lines between have been dropped, or that the cursor is of another node or an earlier start; the oldest lines are returned then',
        schema: z.object({ items: z.array(lineSchema), cursor: z.string(), gap: z.boolean() }),
      },
    },
    handle({ query: { function: name = null, requestId = null, level, limit, cursor } }) {
      const list = [name, level, requestId]
      const [of, seq] = cursor === undefined ? [node, null] : cursors.parse(list, cursor)
      const after = of === node ? seq : 0
      const found = lines.find({ function: name, level, requestId, after, limit, bytesMax: recentLinesListedBytes })
      return json({
        items: found.items.map(format),
        cursor: cursors.format(list, [node, found.last]),
        gap: found.hasGap || of !== node,
      })
    },
  })
}
