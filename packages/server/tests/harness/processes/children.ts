/** The child processes of a process, as the kernel lists them. Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

export const canListChildren = process.platform === 'linux'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process has ended.
    return ''
  }
}

/** Whether the process exists and has not ended: a zombie that its parent has not collected has. */
export function isRunning(pid: number): boolean {
  const state = /\) (\S)/.exec(read(`/proc/${pid}/stat`))?.[1]
  return state !== undefined && state !== 'Z' && state !== 'X'
}

/** Pids of the running children of `parent` that were started with this program. */
export const childrenOf = (parent: number, program: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter(
      (pid) =>
        /\) \S (\d+)/.exec(read(`/proc/${pid}/stat`))?.[1] === String(parent) &&
        isRunning(pid) &&
        read(`/proc/${pid}/cmdline`).includes(program),
    )

/** Files mapped into the memory of a process. */
export const mappedFiles = (pid: number): string => read(`/proc/${pid}/maps`)
