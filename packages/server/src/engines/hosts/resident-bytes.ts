/** The resident memory of a process. On Linux only: elsewhere it is unknown. */
import { readFileSync } from 'node:fs'

const residentPages = (pid: number | 'self'): number | null => {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ', 2)[1])
  } catch {
    return null
  }
}

/** From 4 KiB to 64 KiB by processor; found by comparison with what the runtime reports of this process. */
const pageBytes = ((): number => {
  const pages = residentPages('self')
  return pages ? 2 ** Math.round(Math.log2(process.memoryUsage.rss() / pages)) : 0
})()

/** Bytes; null if unknown, such as of a process that has ended. */
export function residentBytes(pid: number): number | null {
  const pages = residentPages(pid)
  return pages === null ? null : pages * pageBytes
}
