/** Probes a folder with a small write, to detect a full, read-only or failing disk before a request does. */
import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { diskProbeBytes, diskProbeIntervalMs, diskProbeTimeoutMs } from '../../limits/sqlite.ts'
import { describeDiskFault } from './disk-faults.ts'

/** Returns why the folder cannot be written, or null. Never rejects. */
export type DiskProbe = () => Promise<string | null>

/** The result of `work`, or `late` after `diskProbeTimeoutMs`. */
export async function withinProbeTime(work: Promise<string | null>, late: string): Promise<string | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, diskProbeTimeoutMs, late)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

/**
 * Writes, syncs and removes one block. `what` names the folder in the reason. Concurrent probes are shared, and a
 * result is cached for `diskProbeIntervalMs`: the health endpoint is public and unlimited.
 */
export function createDiskProbe(folder: string, what: string): DiskProbe {
  const path = join(folder, '.probe')
  let running: Promise<string | null> | null = null
  let lastMs = Number.NEGATIVE_INFINITY
  let last: string | null = null

  async function write(): Promise<void> {
    const file = await open(path, 'w', 0o600)
    try {
      await file.writeFile(Buffer.alloc(diskProbeBytes))
      await file.datasync()
    } finally {
      await file.close()
    }
  }

  async function probe(): Promise<string | null> {
    try {
      await write()
      last = null
    } catch (error) {
      last = describeDiskFault(error, what)
    }
    // Also after a failure: part of the block may exist.
    await unlink(path).catch(() => undefined)
    lastMs = performance.now()
    running = null
    return last
  }

  return () => {
    if (performance.now() - lastMs < diskProbeIntervalMs) return Promise.resolve(last)
    running ??= probe()
    return withinProbeTime(running, `The disk does not answer (${what})`)
  }
}
