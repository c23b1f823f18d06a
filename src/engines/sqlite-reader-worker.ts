/**
 * Runs in a thread of its own: reads for statements that would hold up everybody else. Knows files and statements,
 * nothing more.
 */
import { parentPort } from 'node:worker_threads'
import { isOutOfHandles } from '../base/file-handles.ts'
import { createLru } from '../base/lru.ts'
import { readerFilesMax } from '../limits.ts'
import { EngineError } from './error.ts'
import { type Connection, openConnection } from './sqlite-connection.ts'
import type { ForgetRequest, ReadAnswer, ReadRequest } from './sqlite-slow-reads.ts'

const connections = createLru<string, Connection>(readerFilesMax, (connection) => connection.close())

function connectionTo(path: string): Connection {
  let connection = connections.get(path)
  if (!connection) {
    connection = open(path)
    connections.set(path, connection)
  }
  return connection
}

/** Where the system refuses a handle, the thread gives back those it has. */
function open(path: string): Connection {
  try {
    return openConnection(path, { readonly: true, small: true })
  } catch (error) {
    if (!isOutOfHandles(error)) throw error
    for (const connection of connections.values()) connection.close()
    connections.clear()
    return openConnection(path, { readonly: true, small: true })
  }
}

function read({ id, path, query }: ReadRequest): ReadAnswer {
  try {
    return { id, rows: connectionTo(path).all(query) }
  } catch (error) {
    const kind = error instanceof EngineError ? error.kind : null
    return { id, error: { kind, message: error instanceof Error ? error.message : String(error) } }
  }
}

function forget(path: string): void {
  connections.get(path)?.close()
  connections.delete(path)
}

parentPort?.on('message', (request: ReadRequest | ForgetRequest) => {
  if ('forget' in request) forget(request.forget)
  else parentPort?.postMessage(read(request))
})
