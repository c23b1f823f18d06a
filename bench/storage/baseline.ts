/**
 * The baseline of uploads, as a process: copies of a file, each synced to disk. It does what `cp` and `sync` do, in one
 * process, since for a small file starting two programs would take longer than what they do. No HTTP but to start it.
 * Prints its port when it listens.
 *
 * Usage: storage-baseline.ts <empty folder on the disk of the data>
 */
import { copyFile, open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoopResult } from '../baseline-loops.ts'
import { Histogram } from '../load/histogram.ts'
import { fillerBytes } from '../load/load-requests.ts'

/** Number, size and concurrency of the copies. */
export interface Copies {
  readonly bytes: number
  readonly total: number
  readonly atOnce: number
}

/** Creates the copies, measures the time, and removes them. */
async function copy(folder: string, { bytes, total, atOnce }: Copies): Promise<LoopResult> {
  const source = join(folder, `source-${bytes}`)
  await writeFile(source, fillerBytes(bytes))
  const targets = Array.from({ length: total }, (_, number) => join(folder, `copy-${number}`))
  const latencies = new Histogram()
  const left = targets.values()
  const lane = async (): Promise<void> => {
    for (const target of left) {
      const startedAt = performance.now()
      await copyFile(source, target)
      await syncFile(target)
      latencies.add(performance.now() - startedAt)
    }
  }
  await syncFile(source)
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  await Promise.all(Array.from({ length: atOnce }, lane))
  const elapsedMs = performance.now() - startedAt
  const used = process.cpuUsage(cpu)
  for (const path of [...targets, source]) await rm(path)
  return {
    done: total,
    seconds: elapsedMs / 1000,
    cpuSeconds: (used.user + used.system) / 1e6,
    latencies: latencies.toSparse(),
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

function serve(folder: string): number {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    // Copying large files takes long.
    idleTimeout: 255,
    routes: {
      '/copies': { POST: async (request) => Response.json(await copy(folder, (await request.json()) as Copies)) },
    },
    fetch: () => new Response('Not found', { status: 404 }),
  })
  return server.port as number
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error('Usage: storage-baseline.ts <folder>')
  console.log(serve(folder))
}
