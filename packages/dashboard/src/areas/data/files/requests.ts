/** Requests of imports and exports. */
import { isPlinthError } from 'plinth-client'
import {
  type BatchOptions,
  batchBody,
  batchIdentity,
  faultsOf,
  type RecordBatch,
  type SourceFault,
} from '../../../../../server/src/query/record-files/record-batches.ts'
import type { RecordFormat } from '../../../../../server/src/query/record-files/record-text.ts'
import { api, openStream } from '../../../app/transport.ts'
import { apiPath, type TableAddress } from '../location.ts'
import { parametersOf, type RowQuery } from '../rows/row-query.ts'

export type Outcome =
  | { readonly kind: 'stored'; readonly inserted: number; readonly updated: number }
  /** Nothing of the batch was stored. */
  | { readonly kind: 'refused'; readonly faults: readonly SourceFault[] }

async function sha256(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** What is wrong, by the path of the field. */
type FieldErrors = Readonly<Record<string, { readonly message: string }>> | undefined

/** How often a batch is repeated that the server is too busy to answer. */
const retries = 8

/** Sends a batch, which is stored at most once. Rejects with what concerns no single record. */
export async function sendBatch(
  address: TableAddress,
  batch: RecordBatch,
  options: BatchOptions,
  signal: AbortSignal,
): Promise<Outcome> {
  const path = apiPath(address)
  const body = batchBody(batch, options)
  const key = `import-${await sha256(batchIdentity(path, batch, body, options))}`
  try {
    const stored = await api.post<{ readonly inserted: number; readonly updated: number }>(`${path}/batch/import`, {
      body,
      signal,
      retries,
      ...(options.isDryRun ? {} : { idempotencyKey: key }),
    })
    return { kind: 'stored', ...stored }
  } catch (error) {
    const faults = isPlinthError(error) ? faultsOf(error.data as FieldErrors, batch.rows) : null
    if (!faults) throw error
    return { kind: 'refused', faults }
  }
}

export interface ExportOptions {
  readonly format: RecordFormat
  /** Null for all but hidden ones. */
  readonly fields: readonly string[] | null
}

/** Bytes that are kept by the page before the browser stores them as a blob, which it can do on disk. */
const foldedBytes = 8 * 1024 * 1024

/** Downloads the records that a query selects. `onBytes` is told what has arrived so far. */
export async function downloadExport(
  address: TableAddress,
  query: RowQuery,
  { format, fields }: ExportOptions,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: (bytes: number) => void },
): Promise<Blob> {
  const path = apiPath(address).replace('/tables/', '/export/')
  const stream = await openStream(
    path,
    { ...parametersOf(query), format, ...(fields && { fields: fields.join(',') }) },
    signal,
  )
  const reader = stream.getReader()
  let parts: BlobPart[] = []
  let bytes = 0
  let loose = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return new Blob(parts)
    parts.push(value)
    bytes += value.length
    loose += value.length
    if (loose >= foldedBytes) {
      parts = [new Blob(parts)]
      loose = 0
    }
    onBytes(bytes)
  }
}

export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
