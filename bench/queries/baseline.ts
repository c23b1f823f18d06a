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

// `+?` as in the server: with `?` SQLite would plan sorted statements again before each run.
const posts = `
  SELECT json_object('id', p."id", 'title', p."title", 'body', p."body", 'topic', p."topic", 'rank', p."rank",
    'authorId', p."authorId", 'createdAt', p."createdAt", 'updatedAt', p."updatedAt",
    'author', (SELECT json_object('id', a."id", 'name', a."name", 'bio', a."bio", 'createdAt', a."createdAt",
        'updatedAt', a."updatedAt") FROM authors a WHERE a."id" = p."authorId"),
    'comments', json_object('items', (SELECT json_group_array(json_object('id', c."id", 'text', c."text",
        'rank', c."rank", 'postId', c."postId", 'createdAt', c."createdAt", 'updatedAt', c."updatedAt"))
      FROM (SELECT * FROM comments WHERE "postId" = p."id" ORDER BY "rank" DESC LIMIT 3) c))) AS item
  FROM posts p WHERE p."topic" = +? ORDER BY p."rank" DESC LIMIT 30`

const plain = `SELECT json_object('id', "id", 'title', "title", 'body', "body", 'topic', "topic", 'rank', "rank",
    'authorId', "authorId", 'createdAt', "createdAt", 'updatedAt', "updatedAt") AS item
  FROM posts WHERE "topic" = +? ORDER BY "rank" DESC LIMIT 30`

/** Beside the server's tables: coordinates with an ordinary index, and a full-text index of the names. */
const prepareFloor = [
  `CREATE TABLE floor_places AS SELECT "id", "name", "_lon_position" AS lon, "_lat_position" AS lat FROM places`,
  'CREATE INDEX floor_by_place ON floor_places (lat, lon)',
  'CREATE VIRTUAL TABLE floor_names USING fts5(name, tokenize = "unicode61 remove_diacritics 2")',
  'INSERT INTO floor_names (rowid, name) SELECT rowid, name FROM floor_places',
]

/** The rows of a box, by distance on a sphere. Parameters: south, north, west, east, latitude, longitude, radius. */
const near = `
  SELECT json_object('id', id, 'name', name, 'meters', meters) AS item FROM (
    SELECT id, name, 2 * 6371008.8 * asin(sqrt(pow(sin(radians(lat - ?5) / 2), 2)
      + cos(radians(lat)) * cos(radians(?5)) * pow(sin(radians(lon - ?6) / 2), 2))) AS meters
    FROM floor_places WHERE lat BETWEEN ?1 AND ?2 AND lon BETWEEN ?3 AND ?4)
  WHERE meters <= ?7 ORDER BY meters LIMIT 20`

const named = `
  SELECT json_object('id', p.id, 'name', p.name) AS item
  FROM floor_names JOIN floor_places p ON p.rowid = floor_names.rowid
  WHERE floor_names MATCH +? ORDER BY bm25(floor_names) LIMIT 20`
const namedCount = 'SELECT count(*) AS total FROM floor_names WHERE floor_names MATCH ?'

const degreesPerMeter = 360 / (2 * Math.PI * 6_371_008.8)

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
  const database = new Database(join(folder, 'databases', 'shared.sqlite'))
  for (const statement of prepareFloor) database.run(statement)
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
  const byDistance = database.prepare<{ item: string }, number[]>(near)
  const nearest = (lon: number, lat: number, meters: number): Response => {
    const [height, width] = [meters * degreesPerMeter, (meters * degreesPerMeter) / Math.cos((lat * Math.PI) / 180)]
    const rows = byDistance.all(lat - height, lat + height, lon - width, lon + width, lat, lon, meters)
    return new Response(`{"items":[${rows.map(({ item }) => item)}]}`, json)
  }
  const byName = database.prepare<{ item: string }, [string]>(named)
  const countByName = database.prepare<{ total: number }, [string]>(namedCount)
  const search = (word: string): Response => {
    const total = countByName.get(`"${word}"*`)?.total
    return new Response(`{"items":[${byName.all(`"${word}"*`).map(({ item }) => item)}],"total":${total}}`, json)
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    routes: {
      '/posts/:topic': ({ params }) => withRelated(params.topic),
      '/plain/:topic': ({ params }) => withoutRelated(params.topic),
      '/near/:lon/:lat/:meters': ({ params: { lon, lat, meters } }) =>
        nearest(Number(lon), Number(lat), Number(meters)),
      '/search/:word': ({ params }) => search(params.word),
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
