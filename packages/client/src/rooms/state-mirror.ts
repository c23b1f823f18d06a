/** A value as the application sees it: the current one, and listeners of all of it or of a path. */
import { createListeners } from '../core/listeners.ts'
import { freeze, valueAt } from './state.ts'

export class StateMirror<Value> {
  /** Of the last change of a state. */
  version = 0
  current: Value
  readonly #listeners = createListeners()

  constructor(initial: Value) {
    this.current = freeze(initial)
  }

  set(next: Value): void {
    if (next === this.current) return
    this.current = freeze(next)
    this.#listeners.emit()
  }

  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Calls the listener when the value at a path such as `a.b` has changed. */
  on(path: string, listener: (value: unknown) => void): () => void {
    let known = valueAt(this.current, path)
    return this.subscribe(() => {
      const value = valueAt(this.current, path)
      if (value === known) return
      known = value
      listener(value)
    })
  }
}
