/** HTTP endpoint of SQL databases. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { sqlParamsMax, sqlTimeoutMsMax, sqlWaitMs } from '../../limits/resources.ts'

const statementBody = z.object({
  query: z.string().meta({ description: 'A single statement. Parameters are `?` or `?1`' }),
  params: z
    .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .max(sqlParamsMax)
    .default([])
    .meta({ description: 'One value per parameter' }),
})

const answer = z.object({
  results: z.array(z.record(z.string(), z.unknown())),
  meta: z.object({
    changes: z.number().meta({ description: 'Rows changed by the statement itself' }),
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
      'Runs one statement atomically. Returns 400 with the database’s message for an invalid statement, too many rows or a timeout, and 413 if the database is full.',
    credentials: 'service',
    scope: ({ database }) => `sql:database:${database}:exec`,
    rateLimit: 'db',
    body: statementBody,
    answerSeconds: (sqlTimeoutMsMax + sqlWaitMs) / 1000 + 5,
    replies: { 200: { description: 'Rows and statistics', schema: answer } },
    errors: [404, 413, 503],
    handle: handlers.exec,
  }),
]
