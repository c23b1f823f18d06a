/** A set of callbacks. */

export interface Listeners<Args extends readonly unknown[] = []> {
  /** Returns the function that removes the listener, and says whether it was still there. */
  add(listener: (...args: Args) => void): () => boolean
  /** Calls every listener. One that throws is logged and does not affect the others or the caller. */
  emit(...args: Args): void
}

export function createListeners<Args extends readonly unknown[] = []>(): Listeners<Args> {
  // In arrays of their own, so that one function added twice is called twice and removed once.
  const all = new Set<[listener: (...args: Args) => void]>()
  return {
    add(listener) {
      const entry: [typeof listener] = [listener]
      all.add(entry)
      return () => all.delete(entry)
    },
    emit(...args) {
      for (const [listener] of [...all])
        try {
          listener(...args)
        } catch (error) {
          console.error(error)
        }
    },
  }
}
