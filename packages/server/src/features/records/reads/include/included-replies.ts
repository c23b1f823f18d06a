/**
 * Responses with related records. A page whose related records would exceed the maximum response size has fewer
 * records, each with all that belongs to it; a single record that exceeds it is refused.
 */
import { payloadTooLarge } from '../../../../errors.ts'
import type { Reply } from '../../../../http/endpoint.ts'
import { itemBytesMax, type ResponseLimits } from '../../../../http/replies/large-responses.ts'
import { includedRecordsMax } from '../../../../limits/api.ts'
import type { RecordRow } from '../../rows.ts'
import { type ReadPage, respondWithPage } from '../page.ts'
import { type PageWriter, pageReply, recordReply } from '../page-reply.ts'
import { type Reading, relatedMembers, type Showing, withMembers } from './related-rows.ts'

interface Way {
  readonly read: ReadPage
  readonly isLarge: boolean
  readonly limits: ResponseLimits
}

const tooLarge = (limits: ResponseLimits): Error =>
  payloadTooLarge(limits.bytesMax(), 'record with its related records')

function createReading({ read, limits }: Way): Reading {
  const bytesMax = itemBytesMax(limits.bytesMax())
  return { read, charsMax: bytesMax, bytesLeft: bytesMax, recordsLeft: includedRecordsMax }
}

/** How many of the texts, from the start, have at most `charsMax` characters together. */
function countWithin(texts: readonly string[], charsMax: number): number {
  let chars = 0
  const end = texts.findIndex(({ length }) => {
    chars += length
    return chars > charsMax
  })
  return end < 0 ? texts.length : end
}

/** The response with a page; null if the related records are too large to be read in one step. */
export async function pageWithIncluded(
  showing: Showing,
  found: { readonly rows: RecordRow[]; readonly bytes: number; readonly isCut: boolean },
  writer: PageWriter,
  way: Way,
): Promise<Reply | null> {
  let { rows, isCut } = found
  for (;;) {
    const reading = createReading(way)
    const members = await relatedMembers(showing.included, rows, reading)
    const count = members ? countWithin(members, reading.charsMax) : Math.floor(rows.length / 2)
    if (members && count === rows.length) {
      const memberOf = new Map(rows.map((row, at) => [row, members[at] as string]))
      const text = (row: RecordRow): string => withMembers(showing, memberOf.get(row) as string, writer.text(row))
      return pageReply({ rows, bytes: found.bytes, isCut }, { ...writer, item: null, text }, way.limits)
    }
    if (!way.isLarge) return null
    if (count === 0) throw tooLarge(way.limits)
    rows = rows.slice(0, count)
    isCut = true
  }
}

/** The response with one record. Throws 413 if it is too large with its related records. */
export const recordWithIncluded = (
  showing: Showing,
  row: RecordRow,
  version: number,
  limits: ResponseLimits,
): Promise<Reply> =>
  respondWithPage(showing.call, limits, async (read, isLarge) => {
    const reading = createReading({ read, isLarge, limits })
    const members = await relatedMembers(showing.included, [row], reading)
    const own = members?.[0]
    if (own === undefined || own.length > reading.charsMax) {
      if (isLarge) throw tooLarge(limits)
      return null
    }
    const text = (): string => withMembers(showing, own, showing.reader.json(row))
    return recordReply(row, version, { record: showing.reader.record, item: null, text })
  })
