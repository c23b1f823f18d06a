/** Waits for a state of something that notifies its subscribers. */

interface Observable<State> {
  readonly current: State
  subscribe(listener: () => void): () => void
}

/** Resolves as soon as `current` is as expected. The test's time limit is its own. */
export const until = <State>(observable: Observable<State>, isExpected: (state: State) => boolean): Promise<void> =>
  new Promise((resolve) => {
    let stop: (() => void) | undefined
    const check = (): void => {
      if (!isExpected(observable.current)) return
      stop?.()
      resolve()
    }
    stop = observable.subscribe(check)
    check()
  })
