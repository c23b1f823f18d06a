/** Worker thread that builds the index of one `IndexJob` and ends. */
import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from './connection.ts'
import type { IndexJob } from './index-builder.ts'

function build({ path, statement }: IndexJob): string | null {
  try {
    const connection = openConnection(path, { spills: true })
    try {
      connection.exec(statement)
      return null
    } finally {
      connection.close()
    }
  } catch (error) {
    return String(error)
  }
}

parentPort?.postMessage(build(workerData))
