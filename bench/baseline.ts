/**
 * The baseline process: a minimal `Bun.serve` around `baseline-store`, and the same statements in loops without HTTP.
 * It measures the cost of the runtime and SQLite alone, without validation, callers or rules. Prints its port when it
 * listens.
 *
 * Usage: baseline.ts <data folder> <rows it was seeded with>
 */
import { fdatasync } from 'node:fs'
import { isLoopName, runLoop } from './baseline-loops.ts'
import { type BaselineStore, openBaselineStore } from './baseline-store.ts'

const json = { headers: { 'content-type': 'application/json' } }
const created = { ...json, status: 201 }

interface PendingInsert {
  readonly row: Record<string, unknown>
  readonly reply: (response: Response) => void
}

/**
 * The simplest group commit: requests of one tick of the event loop share one transaction and one sync off the main
 * thread.
 */
function createGroupInsert(store: BaselineStore): (row: Record<string, unknown>) => Promise<Response> {
  let queue: PendingInsert[] = []
  let busy = false

  function commit(): void {
    const group = queue
    queue = []
    const stored = store.insert(
      'notes',
      group.map(({ row }) => row),
      true,
    )
    fdatasync(store.walDescriptor, (error) => {
      for (const [at, { reply }] of group.entries()) {
        reply(error ? new Response(null, { status: 500 }) : new Response(JSON.stringify(stored[at]), created))
      }
      if (queue.length > 0) commit()
      else busy = false
    })
  }

  return (row) =>
    new Promise((reply) => {
      queue.push({ row, reply })
      if (busy) return
      busy = true
      setImmediate(commit)
    })
}

function serve(store: BaselineStore, rows: number): number {
  const insert = createGroupInsert(store)
  let bare = ''
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: 64 * 1024 * 1024,
    routes: {
      '/bare': {
        GET: () => new Response(bare, json),
        PUT: async (request) => {
          bare = await request.text()
          return new Response(null, { status: 204 })
        },
      },
      '/get/:table/:id': (request) => {
        const { table, id } = request.params
        return new Response(JSON.stringify(store.get(table === 'notes' ? 'notes' : 'posts', id)), json)
      },
      '/list/:author': (request) => new Response(JSON.stringify(store.list(request.params.author)), json),
      '/total/:author': (request) => new Response(JSON.stringify(store.listWithTotal(request.params.author)), json),
      '/all': () => new Response(JSON.stringify(store.listAll()), json),
      '/search/:word': (request) => new Response(JSON.stringify(store.search(request.params.word)), json),
      '/insert': { POST: async (request) => insert((await request.json()) as Record<string, unknown>) },
      '/loop/:name': (request) => {
        const { name } = request.params
        if (!isLoopName(name)) return new Response(`No loop ${name}`, { status: 404 })
        const seconds = Number(new URL(request.url).searchParams.get('seconds'))
        return Response.json(runLoop(store, name, rows, seconds))
      },
    },
    fetch: () => new Response('Not found', { status: 404 }),
  })
  return server.port as number
}

const [folder, rows] = process.argv.slice(2)
if (folder === undefined || rows === undefined) throw new Error('Usage: baseline.ts <data folder> <rows>')
console.log(serve(openBaselineStore(folder), Number(rows)))
