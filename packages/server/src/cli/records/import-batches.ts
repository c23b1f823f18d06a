/**
 * Sends records to a server in batches. A batch is stored in one transaction and at most once, so that a run that is
 * repeated continues where it stopped.
 */
import { sha256 } from '../../base/crypto/hash.ts'
import { ApiError } from '../../errors.ts'
import { importAttemptsMax, importPauseMs } from '../../limits/writes.ts'
import {
  type BatchOptions,
  batchBody,
  batchIdentity,
  faultsOf,
  type RecordBatch,
  type SourceFault,
} from '../../query/record-files/record-batches.ts'
import type { AdminRequest } from '../admin-call.ts'

export type Outcome =
  | { readonly kind: 'stored'; readonly inserted: number; readonly updated: number; readonly isReplayed: boolean }
  /** Nothing was stored. */
  | { readonly kind: 'refused'; readonly faults: readonly SourceFault[] }

/** Whether a later attempt may succeed: the server was too busy. */
const isBusy = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 429 || error.status === 503)

async function sendWhenIdle(send: () => ReturnType<AdminRequest>): ReturnType<AdminRequest> {
  for (let attempt = 1; ; attempt++)
    try {
      return await send()
    } catch (error) {
      if (!isBusy(error) || attempt === importAttemptsMax) throw error
      const seconds = Number(error.headers['retry-after'] ?? 1)
      await new Promise((resolve) => setTimeout(resolve, Math.min(seconds * 1000, importPauseMs)))
    }
}

/** Sends one batch. Throws what concerns no single record, such as a wrong service key. */
export async function sendBatch(
  request: AdminRequest,
  path: string,
  batch: RecordBatch,
  options: BatchOptions,
): Promise<Outcome> {
  const body = batchBody(batch, options)
  const key = `import-${sha256(batchIdentity(path, batch, body, options))}`
  try {
    const { answer, headers } = await sendWhenIdle(() =>
      request('POST', `${path}/batch/import`, body, options.isDryRun ? {} : { 'Idempotency-Key': key }),
    )
    const { inserted, updated } = answer as { inserted: number; updated: number }
    return { kind: 'stored', inserted, updated, isReplayed: headers.has('Idempotency-Replayed') }
  } catch (error) {
    const faults = error instanceof ApiError ? faultsOf(error.data, batch.rows) : null
    if (!faults) throw error
    return { kind: 'refused', faults }
  }
}
