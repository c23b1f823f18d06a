/** Reads a byte range of an object as a stream, resumed after a disconnect. */
import { s3AttemptsMax } from '../../limits/storage.ts'
import { BlobMissingError, type ByteRange } from '../blobs/blobs.ts'
import { EngineError } from '../sql/error.ts'
import type { S3Requests, S3Stream } from './requests.ts'

export interface S3Range extends ByteRange {
  readonly id: string
  readonly key: string
}

interface Connection {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  readonly answer: S3Stream
}

/** Requests the bytes; resolves once the store has begun to respond. */
export async function readS3Blob(requests: S3Requests, range: S3Range): Promise<ReadableStream<Uint8Array>> {
  const { id, key, start, end } = range
  // HTTP ranges cannot be empty.
  if (start === end) {
    const found = await requests.send({ method: 'HEAD', key, tolerated: ['NoSuchKey'] })
    if (found === null) throw new BlobMissingError(id)
    return new ReadableStream({ start: (controller) => controller.close() })
  }
  let at = start
  let failures = 0
  let connection: Connection | null = await connect(requests, range)

  /** The next bytes, over a new connection if the previous one failed. */
  async function next(): Promise<Uint8Array> {
    for (;;) {
      connection ??= await connect(requests, { ...range, start: at }, true)
      const { reader, answer } = connection
      answer.deadline.move()
      try {
        const { done, value } = await reader.read()
        // While the consumer processes the bytes, the store is not responsible for the delay.
        answer.deadline.pause()
        if (done) throw new Error('The store ended early')
        failures = 0
        return value
      } catch (error) {
        drop()
        if (++failures >= s3AttemptsMax) throw new EngineError('unavailable', 'The store disconnected', [], error)
      }
    }
  }
  function drop(): void {
    connection?.answer.deadline.abort()
    connection = null
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = (await next()).subarray(0, end - at)
        at += bytes.length
        controller.enqueue(bytes)
        if (at < end) return
        connection?.answer.deadline.end()
        controller.close()
      },
      cancel: drop,
    },
    // No read-ahead: the connection has its own buffer.
    { highWaterMark: 0 },
  )
}

async function connect(
  requests: S3Requests,
  { id, key, start, end }: S3Range,
  isContinuation = false,
): Promise<Connection> {
  const headers = { range: `bytes=${start}-${end - 1}` }
  const answer = await requests.open({ method: 'GET', key, headers, tolerated: ['NoSuchKey'], isContinuation })
  if (answer === null) throw new BlobMissingError(id)
  const given = answer.headers.get('content-range') ?? ''
  if (given.startsWith(`bytes ${start}-${end - 1}/`)) return { reader: answer.body.getReader(), answer }
  answer.deadline.abort()
  throw new EngineError('unavailable', 'A blob is damaged')
}
