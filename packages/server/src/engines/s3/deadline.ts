/** Deadlines of exchanges with an S3 store: each ends with its exchange, and all with the client. */

/** Aborts an exchange that exceeds its time limit. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #ms: number
  readonly #onEnd: (deadline: Deadline) => void
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Starts the timer. `onEnd` is called when the deadline ends or aborts. */
  constructor(ms: number, onEnd: (deadline: Deadline) => void) {
    this.#ms = ms
    this.#onEnd = onEnd
    this.move()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Restarts the timer. */
  move(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.abort(), this.#ms)
  }

  /** Stops the timer while the store is not responsible for the delay. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Ends the deadline: the exchange is complete. */
  end(): void {
    clearTimeout(this.#timer)
    this.#onEnd(this)
  }

  /** Aborts the exchange. */
  abort(): void {
    this.end()
    this.#controller.abort()
  }
}

export class Deadlines {
  readonly #running = new Set<Deadline>()
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** After `close`, the deadline is aborted from the start. */
  start(ms: number): Deadline {
    const deadline = new Deadline(ms, (ended) => this.#running.delete(ended))
    if (this.#isClosed) deadline.abort()
    else this.#running.add(deadline)
    return deadline
  }

  /** Aborts every exchange, and later ones when they start. */
  close(): void {
    this.#isClosed = true
    for (const deadline of [...this.#running]) deadline.abort()
  }
}
