/**
 * A node without Plinth: a minimal `Bun.serve` around the runtime's own PostgreSQL client, with the statements of the
 * scenarios and no callers, rules or validation. Several of them show what another process costs on this machine.
 * Prints its port when it listens.
 *
 * Usage: bare-node.ts <database URL>
 */
import { pageSize } from '../scenarios.ts'
import { columnList } from './pgbench-scripts.ts'

/** As many connections as a node shares between its reads. */
const connections = 8

const [url] = process.argv.slice(2)
if (url === undefined) throw new Error('The first argument is the URL of the database')
const db = new Bun.SQL({ url, max: connections })

const pointQuery = `SELECT ${columnList} FROM shared.posts WHERE "id" = $1`
const listQuery = `SELECT ${columnList} FROM shared.posts WHERE "authorId" = $1 AND "published"
  ORDER BY "createdAt" DESC NULLS LAST, "id" DESC LIMIT ${pageSize + 1}`

async function read(id: string): Promise<Response> {
  const [row] = await db.unsafe(pointQuery, [id])
  return Response.json(row)
}

async function list(query: string): Promise<Response> {
  const [[, , author]] = JSON.parse(new URLSearchParams(query).get('filter') ?? '') as [[string, string, string]]
  const rows: unknown[] = await db.unsafe(listQuery, [author])
  return Response.json({ items: rows.slice(0, pageSize), next: rows.length > pageSize ? author : null })
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url: address }) {
    const query = address.indexOf('?')
    return query < 0 ? read(address.slice(address.lastIndexOf('/') + 1)) : list(address.slice(query))
  },
})
process.on('SIGTERM', () => process.exit(0))
console.log(server.port)
