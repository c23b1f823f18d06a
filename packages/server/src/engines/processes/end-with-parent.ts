/**
 * Ends this process with its parent, also while it runs an endless loop: the kernel kills it. On Linux only. A process
 * of another system has to notice by itself that its parent is gone.
 */
import { dlopen } from 'bun:ffi'
import { constants } from 'node:os'

/** Of prctl(2). */
const setParentDeathSignal = 1
/** The C library of most distributions, and of those that use musl. */
const libraries = ['libc.so.6', 'libc.so']

/** Returns whether the kernel will do so. */
export function endWithParent(): boolean {
  if (process.platform !== 'linux') return false
  const zero = 0n
  for (const library of libraries)
    try {
      const { symbols } = dlopen(library, { prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' } })
      return symbols.prctl(setParentDeathSignal, BigInt(constants.signals.SIGKILL), zero, zero, zero) === 0
    } catch {
      // Another library.
    }
  return false
}
