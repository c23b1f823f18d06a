/** Worker thread for statements that would block the event loop. Knows files and statements only. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { createLru } from '../../../base/concurrency/lru.ts'
import { isOutOfHandles } from '../../../base/files/file-handles.ts'
import { readerFilesMax, readerThreadNiceness } from '../../../limits/sqlite.ts'
import { EngineError } from '../../sql/error.ts'
import type { PageRows } from '../../sql/page-query.ts'
import type { SqlRow } from '../../sql/sql.ts'
import { type Connection, openConnection } from '../connection.ts'
import { readScalar } from './adaptive-reader.ts'
import type { ForgetRequest, ReadAnswer, ReadRequest } from './reader-threads.ts'

/** A sort by long texts buffers a page of them, which may exceed the machine's memory. */
const readerOptions = { readonly: true, small: true, spills: true } as const

const connections = createLru<string, Connection>(readerFilesMax, (connection) => connection.close())

function connectionTo(path: string): Connection {
  let connection = connections.get(path)
  if (!connection) {
    connection = open(path)
    connections.set(path, connection)
  }
  return connection
}

/** When the system is out of handles, the thread closes its own and tries again. */
function open(path: string): Connection {
  try {
    return openConnection(path, readerOptions)
  } catch (error) {
    if (!isOutOfHandles(error)) throw error
    for (const connection of connections.values()) connection.close()
    connections.clear()
    return openConnection(path, readerOptions)
  }
}

function readPage(connection: Connection, { query, bytesMax, scalar }: ReadRequest): PageRows<SqlRow> {
  if (!scalar) return { ...connection.some(query, bytesMax), scalar: null }
  connection.exec('BEGIN')
  try {
    return { ...connection.some(query, bytesMax), scalar: readScalar(connection, scalar) }
  } finally {
    // Some failures roll back the transaction by themselves.
    if (connection.inTransaction) connection.exec('COMMIT')
  }
}

function read(request: ReadRequest): ReadAnswer {
  const { id, path } = request
  try {
    return { id, page: readPage(connectionTo(path), request) }
  } catch (error) {
    const kind = error instanceof EngineError ? error.kind : null
    const message = error instanceof Error ? error.message : String(error)
    return { id, error: { kind, message, isOutOfHandles: isOutOfHandles(error) } }
  }
}

function forget(path: string): void {
  connections.get(path)?.close()
  connections.delete(path)
}

// Linux has a priority for each thread; elsewhere it would be that of the process.
if (process.platform === 'linux') setPriority(readerThreadNiceness)

parentPort?.on('message', (request: ReadRequest | ForgetRequest) => {
  if ('forget' in request) forget(request.forget)
  else parentPort?.postMessage(read(request))
})
