/**
 * Reads the write-ahead log of a SQLite file: how many of its frames are intact, by the checksums of the format
 * (https://www.sqlite.org/fileformat2.html#walformat).
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

const headerBytes = 32
const frameHeaderBytes = 24
/** The lowest bit is the byte order of the checksums. */
const magic = 0x377f0682

export interface LogFrames {
  /** Frames from the start of the log with valid checksums, up to the first that is damaged or older. */
  readonly intact: number
  /** Of these, frames up to the last commit. */
  readonly committed: number
}

/** Running checksum over pairs of words; updates `sums` in place. */
function addChecksum(sums: Uint32Array, bytes: Buffer, isBigEndian: boolean): void {
  let [first = 0, second = 0] = sums
  for (let at = 0; at < bytes.length; at += 8) {
    const one = isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)
    const two = isBigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)
    first = (first + one + second) >>> 0
    second = (second + two + first) >>> 0
  }
  sums[0] = first
  sums[1] = second
}

const none: LogFrames = { intact: 0, committed: 0 }

function readFrames(file: number): LogFrames {
  const header = Buffer.alloc(headerBytes)
  if (readSync(file, header, 0, headerBytes, 0) < headerBytes) return none
  const mark = header.readUInt32BE(0)
  if ((mark & ~1) >>> 0 !== magic) return none
  const isBigEndian = (mark & 1) === 1
  const sums = new Uint32Array(2)
  addChecksum(sums, header.subarray(0, 24), isBigEndian)
  if (sums[0] !== header.readUInt32BE(24) || sums[1] !== header.readUInt32BE(28)) return none
  const salt = header.subarray(16, 24)
  const frame = Buffer.alloc(frameHeaderBytes + header.readUInt32BE(8))
  let intact = 0
  let committed = 0
  for (let at = headerBytes; readSync(file, frame, 0, frame.length, at) === frame.length; at += frame.length) {
    if (!frame.subarray(8, 16).equals(salt)) break
    addChecksum(sums, frame.subarray(0, 8), isBigEndian)
    addChecksum(sums, frame.subarray(frameHeaderBytes), isBigEndian)
    if (sums[0] !== frame.readUInt32BE(16) || sums[1] !== frame.readUInt32BE(20)) break
    intact += 1
    if (frame.readUInt32BE(4) !== 0) committed = intact
  }
  return { intact, committed }
}

/** Frames of a database's log; zero if there is no log. */
export function readLogFrames(databasePath: string): LogFrames {
  let file: number
  try {
    file = openSync(`${databasePath}-wal`, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none
    throw error
  }
  try {
    return fstatSync(file).size === 0 ? none : readFrames(file)
  } finally {
    closeSync(file)
  }
}

/** Offset of the number of frames in the shared index's header, in the machine's byte order. */
const indexFramesAt = 16

/** Number of frames of the log according to the shared index. */
export function readIndexedFrames(databasePath: string): number {
  const file = openSync(`${databasePath}-shm`, 'r')
  try {
    const word = new Uint32Array(1)
    readSync(file, new Uint8Array(word.buffer), 0, 4, indexFramesAt)
    return word[0] ?? 0
  } finally {
    closeSync(file)
  }
}
