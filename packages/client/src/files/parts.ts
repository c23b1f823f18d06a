/** Uploads of a stream, whose size is not known before its end: numbered parts, sent one after the other. */
import type { Core } from '../core/core.ts'

interface PartsUpload {
  readonly core: Core
  /** `/api/storage/{bucket}`. */
  readonly path: string
  readonly key: string
  readonly contentType: string | undefined
  readonly metadata: object | undefined
  readonly signal: AbortSignal | undefined
  readonly onProgress: (sent: number) => void
}

const partTimeoutMs = 120_000

/** Reads at least `bytes` from a stream, or to its end. */
export async function readBytes(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytes: number,
): Promise<{ readonly data: Blob; readonly isEnd: boolean }> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  for (let size = 0; size < bytes; ) {
    const { done, value } = await reader.read()
    if (done) return { data: new Blob(chunks), isEnd: true }
    chunks.push(value as Uint8Array<ArrayBuffer>)
    size += value.byteLength
  }
  return { data: new Blob(chunks), isEnd: false }
}

/** Uploads `first` and the rest of the stream. Resolves with the stored file. */
export async function uploadParts(
  { core, path, key, contentType, metadata, signal, onProgress }: PartsUpload,
  first: Blob,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<object> {
  const send = (action: string, body: object): Promise<Record<string, unknown>> =>
    core.json('POST', `${path}/multipart/${action}`, { body, signal })
  const { uploadId } = await send('create', { key, contentType, customMetadata: metadata })
  try {
    const parts: object[] = []
    let sent = 0
    for (let part = { data: first, isEnd: false }; ; part = await readBytes(reader, first.size)) {
      if (part.data.size > 0) {
        const query = { uploadId, key, partNumber: parts.length + 1 }
        const headers = { 'Content-Type': 'application/octet-stream' }
        const request = { query, raw: part.data, headers, signal, timeout: partTimeoutMs, isRepeatable: true }
        parts.push(await core.json<object>('POST', `${path}/multipart/upload-part`, request))
        sent += part.data.size
        onProgress(sent)
      }
      if (part.isEnd) return await send('complete', { uploadId, key, parts })
    }
  } catch (error) {
    await send('abort', { uploadId, key }).catch(() => undefined)
    throw error
  }
}
