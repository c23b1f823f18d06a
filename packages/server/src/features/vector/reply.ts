/**
 * Responses with many vectors: small ones are serialized in one step, large ones in slices of the event loop, truncated
 * at the response bound.
 */
import type { Caller } from '../../access/caller.ts'
import type { Reply } from '../../http/endpoint.ts'
import { itemBytesMax, itemsReply, type ResponseLimits, serializeItems } from '../../http/replies/large-responses.ts'
import { json, textOf } from '../../http/replies/reply.ts'
import { vectorQuickValuesMax } from '../../limits/resources.ts'

interface Shown<Vector> {
  readonly name: 'matches' | 'vectors'
  readonly found: readonly Vector[]
  readonly show: (vector: Vector) => unknown
  /** Whether the response contains the number of items. */
  readonly count: boolean
}

/** The response to a search or a fetch; has `truncated: true` if vectors did not fit. */
export async function vectorsReply<Vector extends { readonly values: Float32Array | null }>(
  { name, found, show, count }: Shown<Vector>,
  caller: Caller,
  limits: ResponseLimits,
): Promise<Reply> {
  const values = found.reduce((sum, vector) => sum + (vector.values?.length ?? 0), 0)
  const bytesMax = itemBytesMax(limits.bytesMax())
  // A value has at most 25 characters; metadata is bounded per vector.
  if (values <= vectorQuickValuesMax) {
    const reply = json({ [name]: found.map(show), ...(count ? { count: found.length } : {}) })
    if ((textOf(reply) ?? '').length * 3 <= bytesMax) return reply
  }
  return limits.large(caller, async () => {
    const { texts, isCut } = await serializeItems(found, (vector) => JSON.stringify(show(vector)), bytesMax)
    const rest = { ...(count ? { count: texts.length } : {}), ...(isCut ? { truncated: true } : {}) }
    const tail = JSON.stringify(rest)
    return itemsReply(`{"${name}":[`, texts, tail === '{}' ? ']}' : `],${tail.slice(1)}`)
  })
}
