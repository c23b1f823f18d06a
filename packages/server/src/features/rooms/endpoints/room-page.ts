/** Pages of the list of rooms, merged from all nodes that own rooms. */
import type { RoomKey } from '../engine/ports.ts'

export interface RoomPage {
  /** Only rooms of this namespace; null for all. */
  readonly namespace: string | null
  readonly limit: number
  /** The name of the last room of the previous page; null for the first page. */
  readonly after: string | null
}

/** The name by which the list is ordered. A namespace contains no slash. */
export const listNameOf = ({ namespace, id }: RoomKey): string => `${namespace}/${id}`

/** The rooms of a page, in order; one more than the limit if more rooms follow. */
export function takePage<Room extends { readonly key: RoomKey }>(rooms: readonly Room[], page: RoomPage): Room[] {
  const { namespace } = page
  const listed = namespace === null ? rooms : rooms.filter(({ key }) => key.namespace === namespace)
  const named = listed.map((room) => [listNameOf(room.key), room] as const)
  const following = page.after === null ? named : named.filter(([name]) => name > (page.after as string))
  const sorted = following.sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.slice(0, page.limit + 1).map(([, room]) => room)
}
