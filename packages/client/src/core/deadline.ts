/** Waiting: deadlines, abort signals, pauses and backoff. */
import { failure, type PlinthError } from './error.ts'

/** Options of every call. */
export interface Call {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the call fails with slug `timeout`, its retries included. */
  readonly timeout?: number | undefined
}

/** Calls `fail` when the call is aborted or its time is over. Returns the function that ends both. */
export function limitCall({ signal, timeout }: Call, fail: (error: PlinthError) => void): () => void {
  const onAbort = (): void => fail(failure('aborted', undefined, signal?.reason))
  let timer: ReturnType<typeof setTimeout> | undefined
  if (timeout !== undefined) timer = setTimeout(() => fail(failure('timeout')), timeout)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  return () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Waits; ends early when the signal aborts. */
export async function delay(timeout: number, signal?: AbortSignal): Promise<void> {
  let stop!: () => void
  await new Promise((resolve) => {
    stop = limitCall({ signal, timeout }, resolve)
  })
  stop()
}

/** Exponential backoff with full jitter: up to 400 ms after the first attempt, doubled by each, and up to 30 s. */
export const backoffMs = (attempt: number): number => Math.random() * Math.min(30_000, 400 * 2 ** attempt)
