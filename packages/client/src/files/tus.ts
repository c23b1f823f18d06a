/**
 * Resumable uploads (tus 1.0): chunks that continue where a broken connection, a restarted server or a closed page left
 * off.
 */
import type { Core } from '../core/core.ts'
import { backoffMs, delay } from '../core/deadline.ts'
import type { PlinthError } from '../core/error.ts'
import { createLocalValues } from '../core/local-values.ts'
import type { Reply } from '../core/request.ts'

export interface TusUpload {
  readonly core: Core
  /** `/api/storage/{bucket}/uploads/tus`. */
  readonly path: string
  readonly data: Blob
  /** `Upload-Metadata` by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** Under which an unfinished upload is found again; null for data that cannot be recognized. */
  readonly fingerprint: string | null
  readonly signal: AbortSignal | undefined
  readonly onProgress: (sent: number) => void
}

/** Bytes of a request: what a broken connection sends again at most. */
const chunkBytes = 5 * 1024 * 1024
/** How long a chunk may take, in milliseconds: about 45 KB a second. */
const chunkTimeoutMs = 120_000
/** Failures in a row without progress after which an upload is given up; with backoff about four minutes. */
const failuresMax = 14

const tusVersion = { 'Tus-Resumable': '1.0.0' }
const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

export async function uploadInChunks(upload: TusUpload): Promise<void> {
  const { core, data, path, metadata, fingerprint, signal, onProgress } = upload
  const values = createLocalValues(core)
  const send = (method: string, to: string, headers: Record<string, string>, raw?: Blob): Promise<Reply> =>
    core.send(method, to, {
      raw,
      headers: { ...tusVersion, 'Content-Type': 'application/offset+octet-stream', ...headers },
      signal,
      timeout: chunkTimeoutMs,
      retries: 0,
    })
  const pairs = Object.entries(metadata).map(([name, value]) => `${name} ${base64(value)}`)
  const creation = { 'Upload-Length': `${data.size}`, 'Upload-Metadata': pairs.join() }

  let location = fingerprint && (await values.get(fingerprint))
  /** How many bytes the server has; undefined where it is not known. */
  let offset: number | undefined
  /** The greatest offset so far: from there on, an upload makes progress. */
  let sent = 0
  for (let failures = 0; offset !== data.size; )
    try {
      const chunk = data.slice(offset ?? 0, (offset ?? 0) + chunkBytes)
      const isReading = location && offset === undefined
      const { headers } = !location
        ? await send('POST', path, creation, chunk)
        : offset === undefined
          ? await send('HEAD', location, {})
          : await send('PATCH', location, { 'Upload-Offset': `${offset}` }, chunk)
      location ||= headers.get('location')
      offset = Number(headers.get('upload-offset'))
      if (offset > sent) failures = 0
      sent = Math.max(sent, offset)
      if (isReading) continue
      onProgress(offset)
      if (fingerprint) await values.set(fingerprint, location)
    } catch (error) {
      const { status, retryable, retryAfterMs = backoffMs(failures) } = error as PlinthError
      // The server has given the upload up, or another user began it.
      const isForgotten = location && [401, 403, 404, 410].includes(status)
      if (!(isForgotten || retryable || status === 409) || ++failures > failuresMax) throw error
      if (isForgotten) location = null
      offset = undefined
      await delay(retryAfterMs, signal)
    }
  if (fingerprint) await values.set(fingerprint, null)
}

/** Deletes what the server has of the unfinished upload with this fingerprint, and forgets it. */
export async function cancelUpload(core: Core, fingerprint: string): Promise<void> {
  const values = createLocalValues(core)
  const location = await values.get(fingerprint)
  if (!location) return
  await core.send('DELETE', location, { headers: tusVersion, isRepeatable: true }).catch((error: PlinthError) => {
    // Expired, or deleted by an attempt whose answer was lost.
    if (![404, 410].includes(error.status)) throw error
  })
  await values.set(fingerprint, null)
}
