/** Waiting for a condition that is checked again after each event. */
export interface Watch {
  /** Checks every pending condition. */
  readonly notify: () => void
  /** Resolves once the condition is true; checks it at once and after each `notify`. */
  readonly until: (isTrue: () => boolean) => Promise<void>
}

export function createWatch(): Watch {
  const pending = new Set<() => void>()
  return {
    notify() {
      for (const check of pending) check()
    },
    until: (isTrue) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!isTrue()) return
          pending.delete(check)
          resolve()
        }
        pending.add(check)
        check()
      }),
  }
}
