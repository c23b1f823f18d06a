/** How the run of a job failed, where it is not simply repeated after the usual pause. */

export class JobError extends Error {
  /**
   * `failed`: repeated with backoff, or after `retryAfterMs`; `final`: never repeated; `busy`: did not begin, so the
   * attempt does not count.
   */
  readonly kind: 'failed' | 'final' | 'busy'
  readonly retryAfterMs: number | null

  constructor(kind: JobError['kind'], message: string, retryAfterMs: number | null = null) {
    super(message)
    this.name = 'JobError'
    this.kind = kind
    this.retryAfterMs = retryAfterMs
  }
}
