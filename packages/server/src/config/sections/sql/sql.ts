/**
 * The section `sql`: its shape, the names in it, and the form that SQL databases run on. What users write it with is
 * `define-sql`.
 */
import { z } from 'zod'
import { parseByteSize } from '../../../base/text/bytes.ts'
import { parseDuration } from '../../../base/text/duration.ts'
import {
  sqlDatabaseBytes,
  sqlDatabaseBytesMin,
  sqlNameCharsMax,
  sqlRowsMax,
  sqlRowsMaxMost,
  sqlTimeoutMs,
  sqlTimeoutMsMax,
} from '../../../limits/resources.ts'
import type { ConfigIssue } from '../../issues.ts'
import { findNameMistake, findTwins } from '../../names.ts'
import { membersOf, parsedWith, strictObject } from '../../shape-parts.ts'

/** A SQL database with everything that was left out filled in. */
export interface SqlDatabase {
  readonly timeoutMs: number
  readonly rowsMax: number
  readonly bytesMax: number
}

const sqlDatabaseShape = strictObject({
  timeout: parsedWith(parseDuration)
    .refine((ms) => ms <= sqlTimeoutMsMax, `must be at most ${sqlTimeoutMsMax / 1000} seconds`)
    .optional(),
  maxRows: z.int().min(1).max(sqlRowsMaxMost).default(sqlRowsMax),
  maxSize: z
    .union([z.int().min(1), parsedWith(parseByteSize)], { error: 'must be a size such as "1gb", or a number of bytes' })
    .refine((bytes) => bytes >= sqlDatabaseBytesMin, 'must be at least 1mb')
    .optional(),
})

export const sqlShape = z.record(z.string(), sqlDatabaseShape)

/** What is wrong with the section beyond its shape: its names become files, schemas and roles. */
export function checkSql(written: unknown): ConfigIssue[] {
  const names = membersOf(written).map(([name]) => name)
  const twins = findTwins(names).map(
    ([later, earlier]): ConfigIssue => ({
      path: ['sql', later],
      message: `differs from "${earlier}" only in upper and lower case`,
    }),
  )
  const wrong = names.flatMap((name): ConfigIssue[] => {
    const message =
      findNameMistake(name) ??
      (name.length > sqlNameCharsMax ? `must have at most ${sqlNameCharsMax} characters` : null)
    return message === null ? [] : [{ path: ['sql', name], message }]
  })
  return [...twins, ...wrong]
}

/** A database in which nothing was found wrong. */
export const createSqlDatabase = (written: z.output<typeof sqlDatabaseShape>): SqlDatabase =>
  Object.freeze({
    timeoutMs: written.timeout ?? sqlTimeoutMs,
    rowsMax: written.maxRows,
    bytesMax: written.maxSize ?? sqlDatabaseBytes,
  })
