/**
 * The baseline on PostgreSQL: the statements of each scenario as a pgbench script on the server's own tables. Rows and
 * names are those of `data.ts`, drawn by pgbench. Independent statements are pipelined.
 */

import { batchRows, pageSize } from '../scenarios.ts'
import {
  authorCount,
  authorPrefix,
  firstId,
  firstName,
  newRowAt,
  seededIdPrefix,
  topicCount,
  topicPrefix,
  writerCount,
  writerPrefix,
} from '../setup/data.ts'

export interface PgbenchScript {
  readonly text: string
  /** Rows that one execution adds to the notes. */
  readonly rowsAdded: number
  /** Statement parameters. Each is shorter than 128 KiB, the limit of a command-line argument. */
  readonly variables: Readonly<Record<string, string>>
}

/** Values that pgbench cannot generate. */
export interface PgbenchContext {
  readonly rows: number
  /** Time of new rows, later than all existing ones, so that their keys come last, as the server's do. */
  readonly nowMs: number
}

/** Sequence of the last digits of new ids, shared by all clients. */
export const newIds = 'bench_ids'
export const createNewIds = `CREATE SEQUENCE ${newIds} START ${firstId}`

const columns = ['id', 'title', 'body', 'views', 'published', 'authorId', 'tags', 'createdAt', 'updatedAt']
/** The columns of a record, as the scenarios select them. */
export const columnList = columns.map((name) => `"${name}"`).join(', ')
/** The change log's difference to the record before an update. */
const difference = `'[{"views":1,"updatedAt":"2026-01-01T00:00:00.000Z"},[]]'`
const logColumns = 'at, request, "table", id, before, after'

/** Draws one of `count` numbers from `first`. */
const draw = (name: string, first: number, count: number): string =>
  `\\set ${name} random(${first}, ${first + count - 1})`

const drawRow = (rows: number): string => draw('row', firstId, rows)
const drawnId = `'${seededIdPrefix}' || :row`
const drawViews = draw('views', 0, 100_000)

const lines = (...parts: readonly string[]): string => `${parts.join('\n')}\n`
const together = (...statements: readonly string[]): string => lines('\\startpipeline', ...statements, '\\endpipeline')

const reading = (...parts: readonly string[]): PgbenchScript => ({
  text: lines(...parts),
  rowsAdded: 0,
  variables: {},
})

const byAuthor = `"authorId" = '${authorPrefix}' || :author AND "published"`
const newest = '"createdAt" DESC NULLS LAST, "id" DESC'
const found = `_search @@ ('''${topicPrefix}' || :topic || ''':*')::tsquery`
const rank = `-ts_rank(_search, ('''${topicPrefix}' || :topic || ''':*')::tsquery, 1)`

/** UUID v7 of a moment without its last twelve characters, which come from the sequence. */
function newIdPrefix(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-`
}

/** Parameters of a write: a row's content, and its JSON for the change log. */
function writtenAt(nowMs: number): Record<string, string> {
  const { title, body, tags, ...rest } = newRowAt(0)
  const now = new Date(nowMs).toISOString()
  const id = `${newIdPrefix(nowMs)}${firstId}`
  const record = JSON.stringify({ id, title, body, ...rest, tags, createdAt: now, updatedAt: now })
  return { title, body, tags: JSON.stringify(tags), now, at: String(nowMs), request: id, record }
}

const writing = ({ nowMs }: PgbenchContext, rowsAdded: number, ...parts: readonly string[]): PgbenchScript => ({
  text: lines(...parts),
  rowsAdded,
  variables: writtenAt(nowMs),
})

/** Scripts by scenario name. */
export const pgbenchScripts: Readonly<Record<string, (context: PgbenchContext) => PgbenchScript>> = {
  point: ({ rows }) => reading(drawRow(rows), `SELECT ${columnList} FROM shared.posts WHERE "id" = ${drawnId};`),

  list: ({ rows }) =>
    reading(
      draw('author', firstName, authorCount(rows)),
      `SELECT ${columnList} FROM shared.posts WHERE ${byAuthor} ORDER BY ${newest} LIMIT ${pageSize + 1};`,
    ),

  total: ({ rows }) =>
    reading(
      draw('author', firstName, authorCount(rows)),
      together(
        `SELECT ${columnList} FROM shared.posts WHERE ${byAuthor} ORDER BY ${newest} LIMIT ${pageSize};`,
        `SELECT count(*) FROM shared.posts WHERE ${byAuthor};`,
      ),
    ),

  all: () =>
    reading(
      together(
        `SELECT ${columnList} FROM shared.posts ORDER BY "id" LIMIT ${pageSize};`,
        'SELECT count(*) FROM shared.posts;',
      ),
    ),

  search: ({ rows }) =>
    reading(
      draw('topic', firstName, topicCount(rows)),
      together(
        `SELECT ${columnList} FROM shared.posts WHERE ${found} ORDER BY ${rank}, "id" LIMIT 20;`,
        `SELECT count(*) FROM shared.posts WHERE ${found};`,
      ),
    ),

  insert: (context) =>
    writing(
      context,
      1,
      drawViews,
      draw('writer', firstName, writerCount),
      together(
        'BEGIN;',
        `INSERT INTO shared.notes (${columnList}) VALUES ('${newIdPrefix(context.nowMs)}' || nextval('${newIds}'),`,
        `  :title, :body, :views, TRUE, '${writerPrefix}' || :writer, :tags, :now, :now);`,
        `INSERT INTO shared._changes (${logColumns}) VALUES (:at, :request, 'notes',`,
        `  '${newIdPrefix(context.nowMs)}' || currval('${newIds}'), NULL, :record);`,
        'COMMIT;',
      ),
    ),

  update: (context) =>
    writing(
      context,
      0,
      drawRow(context.rows),
      drawViews,
      together('BEGIN;', `SELECT ${columnList} FROM shared.notes WHERE "id" = ${drawnId} FOR UPDATE;`),
      together(
        `UPDATE shared.notes SET "views" = :views, "updatedAt" = :now WHERE "id" = ${drawnId};`,
        `INSERT INTO shared._changes (${logColumns}) VALUES (:at, :request, 'notes', ${drawnId}, ${difference}, :record);`,
        'COMMIT;',
      ),
    ),

  batch: (context) =>
    writing(
      context,
      batchRows,
      drawViews,
      `WITH inserted AS (INSERT INTO shared.notes (${columnList})`,
      `  SELECT '${newIdPrefix(context.nowMs)}' || nextval('${newIds}'), :title, :body, :views, TRUE,`,
      `    '${writerPrefix}' || (${firstName} + number), :tags::json, :now, :now`,
      `  FROM generate_series(1, ${batchRows}) AS number RETURNING "id")`,
      `INSERT INTO shared._changes (${logColumns})`,
      `  SELECT :at::bigint, :request, 'notes', "id", NULL, :record FROM inserted;`,
    ),
}

/** Whether a scenario has a baseline on PostgreSQL. */
export const runsOnPostgres = ({ name }: { readonly name: string }): boolean => Object.hasOwn(pgbenchScripts, name)
