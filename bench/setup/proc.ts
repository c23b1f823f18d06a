/**
 * CPU and memory of a process from `/proc`, and pinning to a core. Figures are null where there is no `/proc`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Linux reports process times in ticks of 1/100 s on every architecture (`sysconf(_SC_CLK_TCK)`). */
const ticksPerSecond = 100

/**
 * Seconds of CPU, user and system, of all threads of a process since it began, and of its children: those that run and
 * those it has seen end. Null where there is no `/proc`.
 */
export function readCpuSeconds(pid: number): number | null {
  const own = readTicks(pid)
  if (own === null) return null
  // A child may have ended since the list was read.
  const children = childrenOf(pid).map((child) => readTicks(child)?.own ?? 0)
  return (own.own + own.ended + children.reduce((sum, ticks) => sum + ticks, 0)) / ticksPerSecond
}

/** CPU seconds of several processes; null when one of them is unknown. */
export const readGroupCpuSeconds = (pids: readonly number[]): number | null => sumOrNull(pids.map(readCpuSeconds))

/** The sum; null when one of the figures is unknown. */
export const sumOrNull = (figures: readonly (number | null)[]): number | null =>
  figures.reduce((sum, figure) => (sum === null || figure === null ? null : sum + figure), 0)

/** The same of the threads that have a name. A thread that has ended is not counted. */
export const readGroupThreadCpuSeconds = (pids: readonly number[], name: string): number | null =>
  sumOrNull(pids.map((pid) => readThreadCpuSeconds(pid, name)))

function readThreadCpuSeconds(pid: number, name: string): number | null {
  const list = readOrNull(`/proc/${pid}/stat`) === null ? null : readdirSync(`/proc/${pid}/task`)
  if (list === null) return null
  const named = list.filter((thread) => readOrNull(`/proc/${pid}/task/${thread}/comm`)?.trim() === name)
  return named.reduce((sum, thread) => sum + (readTicks(`${pid}/task/${thread}`)?.own ?? 0), 0) / ticksPerSecond
}

function readTicks(pid: number | string): { own: number; ended: number } | null {
  const stat = readOrNull(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The second field is the program's name in brackets and may contain spaces; the times are fields 14 to 17.
  const [user, system, endedUser, endedSystem] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number) as [number, number, number, number]
  return { own: user + system, ended: endedUser + endedSystem }
}

/** A child that ends while the kernel lists the children can hide another, so the list is read several times. */
function childrenOf(pid: number): number[] {
  const lists = Array.from({ length: 3 }, () => readOrNull(`/proc/${pid}/task/${pid}/children`) ?? '')
  return [...new Set(lists.flatMap((list) => list.split(' ').filter(Boolean)))].map(Number)
}

/** Current resident bytes (`VmRSS`), or the peak since the last `resetPeakMemory` (`VmHWM`). */
export function readMemoryBytes(pid: number, which: 'VmRSS' | 'VmHWM'): number | null {
  const line = readOrNull(`/proc/${pid}/status`)
    ?.split('\n')
    .find((text) => text.startsWith(`${which}:`))
  return line === undefined ? null : Number(line.replace(/\D/g, '')) * 1024
}

/** Resets `VmHWM`. Without permission the peak remains that of the lifetime of the process. */
export function resetPeakMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // Not Linux, or no permission: the figure is an upper bound.
  }
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/**
 * Prefix of a command that keeps the process on one core; empty for null, where that is not possible, or where there is
 * only one core.
 */
export function pinned(core: number | null): string[] {
  if (core === null) return []
  return Bun.which('taskset') !== null && availableParallelism() > core ? ['taskset', '-c', String(core)] : []
}

/** The server under test and its baselines run here, the load generator on the other. */
export const serverCore = 0
export const loadCore = 1
