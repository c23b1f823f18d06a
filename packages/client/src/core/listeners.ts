/** A set of callbacks. */

export interface Listeners<Args extends readonly unknown[] = []> {
  /** Returns the function that removes the listener, and says whether it was still there. */
  add(listener: (...args: Args) => void): () => boolean
  /** Calls every listener. One that throws is logged and does not affect the others or the caller. */
  emit(...args: Args): void
}

export function createListeners<Args extends readonly unknown[] = []>(): Listeners<Args> {
  // By keys of their own, so that one function added twice is called twice and removed once.
  const all = new Map<object, (...args: Args) => void>()
  return {
    add(listener) {
      const key = {}
      all.set(key, listener)
      return () => all.delete(key)
    },
    emit(...args) {
      for (const listener of [...all.values()])
        try {
          listener(...args)
        } catch (error) {
          console.error(error)
        }
    },
  }
}
