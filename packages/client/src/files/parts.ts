/** Uploads of a stream, whose size is not known before its end: numbered parts, sent one after the other. */
import type { Target } from './target.ts'

const partTimeoutMs = 120_000
/** A part that is sent twice replaces itself. */
const partRetries = 2

/** Bytes of a part or chunk: from this size on, an upload has several; a broken connection sends one again. */
export const partBytes = 5 * 1024 * 1024

/** Reads a part from a stream. */
export async function readPart(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  for (let size = 0; size < partBytes; ) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value as Uint8Array<ArrayBuffer>)
    size += value.byteLength
  }
  return new Blob(chunks)
}

/** Uploads `first` and the rest of the stream. Resolves with the stored file. */
export async function uploadParts(
  { core, path, key, options }: Target,
  first: Blob,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<object> {
  const { contentType, metadata, signal, onProgress } = options
  const send = (action: string, body: object): Promise<Record<string, unknown>> =>
    core.json('POST', `${path}/multipart/${action}`, { body, signal })
  const { uploadId } = await send('create', { key, contentType, customMetadata: metadata })
  try {
    const parts: object[] = []
    let sent = 0
    for (let data = first; ; data = await readPart(reader)) {
      if (data.size > 0) {
        const stored = await core.json<object>('POST', `${path}/multipart/upload-part`, {
          query: { uploadId, key, partNumber: parts.length + 1 },
          raw: data,
          headers: { 'Content-Type': 'application/octet-stream' },
          signal,
          timeout: partTimeoutMs,
          retries: partRetries,
        })
        parts.push(stored)
        sent += data.size
        onProgress?.({ sent, total: null })
      }
      if (data.size < partBytes) return await send('complete', { uploadId, key, parts })
    }
  } catch (error) {
    await send('abort', { uploadId, key }).catch(() => undefined)
    throw error
  }
}
