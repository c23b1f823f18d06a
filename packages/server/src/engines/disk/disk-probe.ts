/** A small write to a folder, by which a full, read-only or failing disk is noticed before a request needs it. */
import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { diskProbeBytes, diskProbeIntervalMs, diskProbeTimeoutMs } from '../../limits/sqlite.ts'
import { describeDiskFault } from './disk-faults.ts'

/** Gives the reason why the folder cannot be written, or null. Never rejects. */
export type DiskProbe = () => Promise<string | null>

/** The text, or null, of `work`; `late` where that takes longer than `diskProbeTimeoutMs`. */
export async function withinProbeTime(work: Promise<string | null>, late: string): Promise<string | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, diskProbeTimeoutMs, late)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

/**
 * Writes, syncs and removes one block. `what` names the folder in the reason. Probes are shared, and a result stands
 * for `diskProbeIntervalMs`: health is asked by anyone, as often as they like.
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
    // Also after a failure: a part of the block may be there.
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
