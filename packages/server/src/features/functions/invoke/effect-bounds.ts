/** Bounds what one attempt of a job writes, since the response to each of its writes is stored. */
import type { HostResponse } from '../../../engines/hosts/hosts.ts'
import { apiError } from '../../../errors.ts'
import { functionEffectChars, functionEffectsMax } from '../../../limits/function-jobs.ts'
import { idempotencyResponseCharsMax } from '../../../limits/writes.ts'

export interface EffectBounds {
  /**
   * Runs a write, or answers 413 once the attempt has written all that it may. Writes that are under way at a time are
   * not counted yet, and those that failed have stored nothing.
   */
  run(write: () => Promise<HostResponse>): Promise<HostResponse>
}

function refusal(): HostResponse {
  const message = `An attempt of a job can make at most ${functionEffectsMax} writes. Divide the work among several jobs`
  const error = apiError('quota-exceeded', message)
  const headers = { 'content-type': 'application/json' }
  return { status: error.status, headers, body: JSON.stringify(error.body()) }
}

export function createEffectBounds(
  { count, chars } = { count: functionEffectsMax, chars: functionEffectChars },
): EffectBounds {
  const left = { count, chars }
  return {
    async run(write) {
      if (left.count <= 0 || left.chars <= 0) return refusal()
      const response = await write()
      if (response.status < 400) {
        left.count--
        left.chars -= Math.min(response.body?.length ?? 0, idempotencyResponseCharsMax)
      }
      return response
    },
  }
}
