/** The chunks of a streamed result between a host and the consumer. The host sends more as the consumer reads. */

export interface ChunkQueue<Chunk> extends AsyncIterableIterator<Chunk> {
  push(chunk: Chunk): void
  end(): void
  /** Chunks that have arrived are still read. */
  fail(error: Error): void
}

export interface ChunkQueueOptions {
  /** A chunk was taken. */
  readonly onRead: () => void
  /** The consumer wants no more. */
  readonly onCancel: () => void
}

export function createChunkQueue<Chunk>({ onRead, onCancel }: ChunkQueueOptions): ChunkQueue<Chunk> {
  const chunks: Chunk[] = []
  let ending: { readonly error: Error | null } | null = null
  let wake: (() => void) | null = null
  const notify = (): void => {
    wake?.()
    wake = null
  }
  const finish = (error: Error | null): void => {
    ending ??= { error }
    notify()
  }

  return {
    push(chunk) {
      if (ending) return
      chunks.push(chunk)
      notify()
    },
    end: () => finish(null),
    fail: finish,
    async next() {
      for (;;) {
        const chunk = chunks.shift()
        if (chunk !== undefined) {
          onRead()
          return { done: false, value: chunk }
        }
        if (ending?.error) throw ending.error
        if (ending) return { done: true, value: undefined }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    async return() {
      if (!ending) onCancel()
      chunks.length = 0
      finish(null)
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

/** The chunks as a stream of bytes. */
export const streamOf = (chunks: ChunkQueue<Uint8Array>): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return?.()
      },
    },
    { highWaterMark: 0 },
  )
