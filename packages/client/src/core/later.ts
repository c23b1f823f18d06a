/** Timers that keep no process alive. */

/** Runs `work` after some milliseconds. Node.js and Bun may exit before. */
export function later(work: () => void, ms: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(work, ms)
  ;(timer as { unref?(): void }).unref?.()
  return timer
}
