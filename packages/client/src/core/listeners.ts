/** A set of callbacks. */

export interface Listeners<Args extends readonly unknown[] = []> {
  /** Returns the function that removes the listener, and says whether it was still there. */
  add(listener: (...args: Args) => void): () => boolean
  /** Calls every listener. One that throws is logged and does not affect the others or the caller. */
  emit(...args: Args): void
}

export function createListeners<Args extends readonly unknown[] = []>(): Listeners<Args> {
  // Boxed, so that one function added twice is called twice and removed once.
  const all = new Set<{ readonly call: (...args: Args) => void }>()
  return {
    add(call) {
      const entry = { call }
      all.add(entry)
      return () => all.delete(entry)
    },
    emit(...args) {
      for (const { call } of [...all])
        try {
          call(...args)
        } catch (error) {
          console.error(error)
        }
    },
  }
}
