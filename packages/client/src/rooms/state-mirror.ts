/** A state as the application sees it: its current value, and listeners of all of it or of a path. */
import { createListeners } from '../core/listeners.ts'
import { freeze, type State, valueAt } from './state.ts'

export class StateMirror {
  readonly #listeners = createListeners()
  #current: State = freeze({})

  get current(): State {
    return this.#current
  }

  set(next: State): void {
    if (next === this.#current) return
    this.#current = next
    this.#listeners.emit()
  }

  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Calls the listener when the value at a path such as `a.b` has changed. */
  on(path: string, listener: (value: unknown) => void): () => void {
    let known = valueAt(this.#current, path)
    return this.#listeners.add(() => {
      const value = valueAt(this.#current, path)
      if (value === known) return
      known = value
      listener(value)
    })
  }
}
