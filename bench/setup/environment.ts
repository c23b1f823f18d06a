/** The machine and the program versions of a run. */
import { Database } from 'bun:sqlite'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem } from 'node:os'

export interface Environment {
  readonly date: string
  readonly processor: string
  readonly cores: number
  readonly memoryGiB: number
  readonly kernel: string
  readonly fileSystem: string
  readonly bun: string
  readonly sqlite: string
}

/** Describes this machine; `folder` is where the data files of the run are. */
export function readEnvironment(folder: string): Environment {
  const db = new Database(':memory:')
  const { version } = db.query('SELECT sqlite_version() AS version').get() as { version: string }
  db.close()
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: cpus()[0]?.model.replace(/\s+/g, ' ').trim() ?? 'unknown processor',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release().split('-')[0] ?? release(),
    fileSystem: fileSystemOf(folder),
    bun: Bun.version,
    sqlite: version,
  }
}

/** Type of the file system with the longest mount point above the folder. */
function fileSystemOf(folder: string): string {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, point]) => point !== undefined && `${folder}/`.startsWith(point.endsWith('/') ? point : `${point}/`))
      .toSorted((a, b) => (b[1]?.length ?? 0) - (a[1]?.length ?? 0))
    return mounts[0]?.[2] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}
