/**
 * Resumable uploads (tus 1.0): chunks that continue where a broken connection, a restarted server or a closed page left
 * off.
 */
import { backoffMs, delay } from '../core/deadline.ts'
import type { PlinthError } from '../core/error.ts'
import { createLocalValues } from '../core/local-values.ts'
import type { Reply } from '../core/request.ts'
import type { FileIdentity } from '../types/files.ts'
import { partBytes } from './parts.ts'
import type { Target } from './target.ts'

/** How long a chunk may take, in milliseconds: about 45 KB a second. */
const chunkTimeoutMs = 120_000
/** Failures in a row without progress after which an upload is given up; with backoff about four minutes. */
const failuresMax = 14

const tusVersion = { 'Tus-Resumable': '1.0.0' }
const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/** What recognizes the same file after the page was loaded again. */
const fingerprintOf = ({ path, key }: Target, { size, type, lastModified, name }: FileIdentity): string =>
  `upload:${JSON.stringify([path, key, size, type, lastModified, name])}`

export async function uploadInChunks(target: Target, data: Blob): Promise<void> {
  const { core, path, key, options } = target
  const { contentType = data.type, metadata, resume = true, signal, onProgress } = options
  const { size } = data
  const values = createLocalValues(core)
  const send = (method: string, to: string, headers: Record<string, string>, raw?: Blob): Promise<Reply> =>
    core.send(method, to, {
      raw,
      headers: { ...tusVersion, 'Content-Type': 'application/offset+octet-stream', ...headers },
      signal,
      timeout: chunkTimeoutMs,
      retries: 0,
    })
  const named = { key, contentType, ...(metadata && { customMetadata: JSON.stringify(metadata) }) }
  const pairs = Object.entries(named).map(([name, value]) => `${name} ${base64(value)}`)
  const creation = { 'Upload-Length': `${size}`, 'Upload-Metadata': pairs.join() }
  // Only files can be recognized.
  const fingerprint = resume && 'lastModified' in data && fingerprintOf(target, data as File)

  let location: string | null | undefined = fingerprint ? await values.get(fingerprint) : null
  /** How many bytes the server has; undefined where it is not known. */
  let offset: number | undefined
  /** The greatest offset so far: from there on, an upload makes progress. */
  let sent = 0
  for (let failures = 0; offset !== size; )
    try {
      const begin = offset ?? 0
      const chunk = data.slice(begin, begin + partBytes)
      const isReading = location && offset === undefined
      const { headers } = !location
        ? await send('POST', `${path}/uploads/tus`, creation, chunk)
        : offset === undefined
          ? await send('HEAD', location, {})
          : await send('PATCH', location, { 'Upload-Offset': `${offset}` }, chunk)
      location ||= headers.get('location')
      offset = Number(headers.get('upload-offset'))
      if (offset > sent) {
        failures = 0
        sent = offset
      }
      if (isReading) continue
      onProgress?.({ sent: offset, total: size })
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

/** Deletes what the server has of an unfinished upload, and forgets it. */
export async function cancelUpload(target: Target, file: FileIdentity): Promise<void> {
  const values = createLocalValues(target.core)
  const fingerprint = fingerprintOf(target, file)
  const location = await values.get(fingerprint)
  if (!location) return
  const request = { headers: tusVersion, retries: 2 }
  await target.core.send('DELETE', location, request).catch((error: PlinthError) => {
    // Expired, or deleted by an attempt whose answer was lost.
    if (![404, 410].includes(error.status)) throw error
  })
  await values.set(fingerprint, null)
}
