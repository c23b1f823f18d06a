/**
 * The floor of the query benchmark, as a process: `Bun.serve` with one hand-written statement per request on a copy of
 * the server's data file, the JSON made by SQLite. Without rules, parsing of filters, or bounds. Prints its port when
 * it listens.
 *
 * Usage: baseline.ts <data folder>
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { type LoopResult, runSteps } from '../baseline-loops.ts'

const json = { headers: { 'content-type': 'application/json' } }

const posts = `
  SELECT json_object('id', p."id", 'title', p."title", 'body', p."body", 'topic', p."topic", 'rank', p."rank",
    'authorId', p."authorId", 'createdAt', p."createdAt", 'updatedAt', p."updatedAt",
    'author', (SELECT json_object('id', a."id", 'name', a."name", 'bio', a."bio", 'createdAt', a."createdAt",
        'updatedAt', a."updatedAt") FROM authors a WHERE a."id" = p."authorId"),
    'comments', json_object('items', (SELECT json_group_array(json_object('id', c."id", 'text', c."text",
        'rank', c."rank", 'postId', c."postId", 'createdAt', c."createdAt", 'updatedAt', c."updatedAt"))
      FROM (SELECT * FROM comments WHERE "postId" = p."id" ORDER BY "rank" DESC LIMIT 3) c))) AS item
  FROM posts p WHERE p."topic" = ? ORDER BY p."rank" DESC LIMIT 30`

const plain = `SELECT json_object('id', "id", 'title', "title", 'body', "body", 'topic', "topic", 'rank', "rank",
    'authorId', "authorId", 'createdAt', "createdAt", 'updatedAt', "updatedAt") AS item
  FROM posts WHERE "topic" = ? ORDER BY "rank" DESC LIMIT 30`

/** As long as the result of the smallest aggregate. */
const bare = JSON.stringify({ groups: Array(6).fill({ status: 'returned', n: 166_667, total: 833_333_333 }) })

/** Statements of the aggregates, by loop; each takes the smallest amount. */
const aggregates = {
  status: `SELECT "status", count(*) AS n, sum("amount") AS total FROM orders WHERE "amount" >= ? GROUP BY "status"`,
  month: `SELECT substr("orderedAt", 1, 7) AS month, count(*) AS n, sum("amount") AS total FROM orders
    WHERE "amount" >= ? GROUP BY 1`,
  buyers: `SELECT "status", count(DISTINCT "buyerId") AS buyers FROM orders WHERE "amount" >= ? GROUP BY "status"`,
} as const
export type AggregateName = keyof typeof aggregates

function serve(folder: string): number {
  const database = new Database(join(folder, 'databases', 'shared.sqlite'), { readonly: true })
  database.run('PRAGMA cache_size = -65536')
  const list = (statement: string): ((topic: string) => Response) => {
    const prepared = database.prepare<{ item: string }, [string]>(statement)
    return (topic) => new Response(`{"items":[${prepared.all(topic).map(({ item }) => item)}]}`, json)
  }
  const [withRelated, withoutRelated] = [list(posts), list(plain)]
  const loop = (name: AggregateName, seconds: number): LoopResult => {
    const statement = database.prepare(aggregates[name])
    return runSteps((index) => {
      JSON.stringify(statement.all(index % 10))
      return 1
    }, seconds)
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    routes: {
      '/posts/:topic': ({ params }) => withRelated(params.topic),
      '/plain/:topic': ({ params }) => withoutRelated(params.topic),
      '/bare': () => new Response(bare, json),
      '/loop/:name': (request) => {
        const seconds = Number(new URL(request.url).searchParams.get('seconds'))
        return Response.json(loop(request.params.name as AggregateName, seconds))
      },
    },
  })
  return server.port as number
}

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Usage: baseline.ts <data folder>')
console.log(serve(folder))
