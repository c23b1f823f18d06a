/** Distances in the items of lists and searches with a condition `near`. */
import { distancesOf, type Nearby } from '../../../query/geo/nearby.ts'
import { type RecordRow, withExtra } from '../rows.ts'
import type { PageWriter } from './page-reply.ts'
import type { RowReader } from './row-reader.ts'

const memberName = 'distances'

const parsed = (stored: unknown): unknown => (typeof stored === 'string' ? JSON.parse(stored) : stored)

/** The centers from which a record is measured: none for records with a field in the place of the distances. */
const centersOf = (reader: RowReader, nearby: Nearby): Nearby | null =>
  nearby.size === 0 || reader.shows(memberName) ? null : nearby

/** The item and its text with the distances, in meters by field, after all other members. */
export function measured(
  { item, text }: Pick<PageWriter, 'item' | 'text'>,
  reader: RowReader,
  nearby: Nearby,
): Pick<PageWriter, 'item' | 'text'> {
  const centers = centersOf(reader, nearby)
  if (!centers) return { item, text }
  return {
    item: item && ((record) => withExtra(item(record) as RecordRow, memberName, distancesOf(record, centers))),
    text(row) {
      const locations = Object.fromEntries([...centers.keys()].map((name) => [name, parsed(row[name])]))
      const own = text(row)
      const member = `${JSON.stringify(memberName)}:${JSON.stringify(distancesOf(locations, centers))}}`
      return own === '{}' ? `{${member}` : `${own.slice(0, -1)},${member}`
    },
  }
}
