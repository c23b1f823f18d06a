/**
 * Detects a lost write-ahead log. The first write after each checkpoint stores a random number, the epoch, in the
 * database's header (`user_version`), so the log has it before the file does. A file without its log whose header has
 * another epoch than the recorded one lacks its last writes. A log that another program checkpointed and removed leaves
 * the right epoch behind.
 */
import { randomInt } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

export interface LogEpoch {
  /** Stamps the transaction about to commit, if it is the first since a checkpoint. */
  stamp(): void
  /** The stamped transaction has committed. */
  committed(): void
  /** The log may have been checkpointed: the next write starts a new epoch. */
  checkpointed(): void
}

const epochMax = 2 ** 31

/** `write` stores the number in the header; `record` is called once per epoch, after its first commit. */
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

/** Offset of `user_version` in SQLite's file format: 4 bytes, big-endian. */
const epochOffset = 60

/** The epoch in a database's file, ignoring its log. Throws if the file cannot be read. */
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
