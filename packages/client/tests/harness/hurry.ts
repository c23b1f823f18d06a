/** Makes the waits of the client short, so that a test need not wait for them. */

/** From here on, `setTimeout` of the client's modules takes no time, and its waits are recorded. Must be stopped. */
export function hurryClient(isHurried: (ms: number) => boolean = () => true) {
  const real = globalThis.setTimeout
  const waits: number[] = []
  const hurried = (work: () => void, ms = 0): unknown => {
    // Of the server in this process, timers keep their time.
    if (!/packages\/client\/src/.test(new Error().stack ?? '') || !isHurried(ms)) return real(work, ms)
    waits.push(ms)
    return real(work, 1)
  }
  globalThis.setTimeout = hurried as typeof setTimeout
  return {
    /** In milliseconds. */
    waits,
    stop(): void {
      globalThis.setTimeout = real
    },
  }
}
