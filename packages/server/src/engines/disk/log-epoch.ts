/**
 * Detects a write-ahead log that was lost. A random number, the epoch, goes into the database's header (`user_version`)
 * with the first write after each checkpoint, so that the log holds it before the file does. A file without its log
 * whose header has another epoch than the recorded one lacks what was written last. A log that another program brought
 * into the file and removed leaves the right epoch behind.
 */
import { randomInt } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

export interface LogEpoch {
  /** Stamps the transaction that is about to commit, where it is the first since a checkpoint. */
  stamp(): void
  /** That transaction has been committed. */
  committed(): void
  /** The log may be in the file now: the next write begins a new epoch. */
  checkpointed(): void
}

const epochMax = 2 ** 31

/** `write` puts the number into the header; `record` is called once for each epoch, after its first commit. */
export function createLogEpoch(write: (epoch: number) => void, record: (epoch: number) => void): LogEpoch {
  let isDue = true
  let epoch = 0
  return {
    stamp() {
      if (!isDue) return
      epoch = randomInt(1, epochMax)
      write(epoch)
    },
    committed() {
      if (!isDue) return
      isDue = false
      record(epoch)
    },
    checkpointed() {
      isDue = true
    },
  }
}

/** Where SQLite's file format has `user_version`: 4 bytes, big-endian. */
const epochOffset = 60

/** The epoch in a database's file, without what its log holds. Throws where the file cannot be read. */
export function readEpoch(path: string): number {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(4)
    readSync(file, bytes, 0, bytes.length, epochOffset)
    return bytes.readInt32BE()
  } finally {
    closeSync(file)
  }
}
