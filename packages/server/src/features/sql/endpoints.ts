/** The endpoint of SQL databases: runs a statement and formats its result. */

import { callerKey } from '../../access/caller.ts'
import { z } from '../../base/schemas/z.ts'
import { StatementError } from '../../engines/sandbox/sandbox.ts'
import { badRequest, invalidField, quotaExceeded } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { jsonText } from '../../http/replies/reply.ts'
import { sqlParamsMax, sqlTimeoutMsMax, sqlWaitMs } from '../../limits/resources.ts'
import type { SqlDatabases } from './databases.ts'

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

/** Whether a statement only reads, as far as its text shows. `SELECT … INTO` creates a table on PostgreSQL. */
const isSelection = (query: string): boolean => /^\s*select\b/i.test(query) && !/\binto\b/i.test(query)

/** Rounds milliseconds to microseconds. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

export const createSqlEndpoint = (databases: SqlDatabases): Endpoint =>
  endpoint({
    name: 'sql.exec',
    isExpensive: true,
    method: 'POST',
    changes: ({ query }) => !isSelection(query),
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
    async handle({ params, body, caller }) {
      const { rows, changes, rowsRead, rowsWritten, durationMs } = await databases
        .run(params.database ?? '', body.query, body.params, callerKey(caller))
        .catch((error) => {
          throw error instanceof StatementError ? apiErrorOf(error) : error
        })
      const meta = { changes, duration: rounded(durationMs), rows_read: rowsRead, rows_written: rowsWritten }
      return jsonText(`{"results":${rows},"meta":${JSON.stringify(meta)}}`)
    },
  })

function apiErrorOf({ kind, message }: StatementError): Error {
  switch (kind) {
    case 'params':
      return invalidField('params', 'type', message)
    case 'full':
      return quotaExceeded('The database')
    case 'query':
      return badRequest(message)
  }
}
