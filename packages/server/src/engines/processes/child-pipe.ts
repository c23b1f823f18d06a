/**
 * Frames over the standard input and output of a child process that runs one thing at a time, without an event loop.
 * The programs define the bodies.
 */
import { readSync, writeSync } from 'node:fs'
import { createFrameReader, writeFrame } from './pipe-frames.ts'

const readBytes = 64 * 1024
const never = new Int32Array(new SharedArrayBuffer(4))

/** The pipe may be non-blocking: waits a moment where it is full or empty, and throws every other error. */
function orWait(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  Atomics.wait(never, 0, 0, 1)
}

/** Sends one frame per text. Returns once the pipe has taken them. */
export function sendFrames(...texts: readonly string[]): void {
  const frames = Buffer.concat(texts.map((text) => writeFrame(text)))
  for (let at = 0; at < frames.length; ) {
    try {
      at += writeSync(1, frames, at)
    } catch (error) {
      orWait(error)
    }
  }
}

/** Calls `handle` with each frame, parsed as JSON. Returns when the pipe ends. */
export function readFrames<Request>(handle: (request: Request) => void): void {
  const read = createFrameReader((body) => handle(JSON.parse(body.toString()) as Request))
  const buffer = Buffer.allocUnsafe(readBytes)
  for (;;) {
    try {
      const size = readSync(0, buffer)
      if (size === 0) return
      read(Buffer.from(buffer.subarray(0, size)))
    } catch (error) {
      orWait(error)
    }
  }
}
