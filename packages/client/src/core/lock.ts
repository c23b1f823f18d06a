/**
 * Runs `work` in one tab at a time where the browser has locks. After `waitMs` it runs anyway, because a frozen tab can
 * hold the lock for as long as it is frozen: the lock must not be what makes the work correct.
 */
export async function exclusively<Result>(name: string, waitMs: number, work: () => Promise<Result>): Promise<Result> {
  const { locks } = (globalThis.navigator ?? {}) as Partial<Navigator>
  let running: Promise<Result> | undefined
  const run = (): Promise<Result> => {
    running ??= work()
    return running
  }
  // Rejects with the error of the work, or because the lock was not granted in time.
  await locks?.request(name, { signal: AbortSignal.timeout(waitMs) }, run).catch(() => undefined)
  return run()
}
