/**
 * Deduplicates concurrent work: calls with the same key share one execution. It is aborted once all callers have.
 */

export interface SingleFlight<T> {
  /**
   * Joins the execution of this key or starts one. The signal of `work` aborts once the signals of all callers have; a
   * caller without a signal keeps it running. Rejects with the reason of the caller's signal if that aborts first.
   */
  run(key: string, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
}

interface Flight<T> {
  readonly result: Promise<T>
  readonly controller: AbortController
  callers: number
}

export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>()

  function start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController()
    const flight: Flight<T> = { result: work(controller.signal), controller, callers: 0 }
    flights.set(key, flight)
    const land = (): void => {
      if (flights.get(key) === flight) flights.delete(key)
    }
    flight.result.then(land, land)
    return flight
  }

  return {
    async run(key, work, signal) {
      signal?.throwIfAborted()
      const flight = flights.get(key) ?? start(key, work)
      flight.callers += 1
      if (!signal) return flight.result
      return new Promise<T>((resolve, reject) => {
        const onAbort = (): void => {
          flight.callers -= 1
          reject(signal.reason)
          if (flight.callers > 0) return
          // A later caller must not join work that is being aborted.
          if (flights.get(key) === flight) flights.delete(key)
          flight.controller.abort(signal.reason)
        }
        signal.addEventListener('abort', onAbort, { once: true })
        flight.result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
      })
    },
  }
}
