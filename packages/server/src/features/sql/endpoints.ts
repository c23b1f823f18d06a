/** The HTTP surface of SQL databases. What a statement does is the database's; which there are is `index`'s. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { sqlParamsMax, sqlTimeoutMsMax, sqlWaitMs } from '../../limits/resources.ts'

const statementBody = z.object({
  query: z.string().meta({ description: 'One statement. Parameters are ? or ?1' }),
  params: z
    .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .max(sqlParamsMax)
    .default([])
    .meta({ description: 'A value for each parameter' }),
})

const answer = z.object({
  results: z.array(z.record(z.string(), z.unknown())),
  meta: z.object({
    changes: z.number().meta({ description: 'Rows that the statement itself changed' }),
    duration: z.number().meta({ description: 'Milliseconds' }),
    rows_read: z.number(),
    rows_written: z.number(),
  }),
})

export type StatementCall = Call<unknown, z.output<typeof statementBody>>

export const sqlEndpoints = (handlers: { exec(call: StatementCall): Promise<Reply> }): readonly Endpoint[] => [
  endpoint({
    name: 'sql.exec',
    method: 'POST',
    paths: ['/api/sql/:database'],
    tag: 'SQL',
    summary: 'Run a SQL statement',
    description:
      'One statement, all or nothing. A mistake in it is 400 with the database’s message; so are too many rows and too much time. 413 when the database is full.',
    credentials: 'service',
    scope: ({ database }) => `sql:database:${database}:exec`,
    rateLimit: 'db',
    body: statementBody,
    answerSeconds: (sqlTimeoutMsMax + sqlWaitMs) / 1000 + 5,
    replies: { 200: { description: 'Rows, and what was done', schema: answer } },
    errors: [404, 413, 503],
    handle: handlers.exec,
  }),
]
