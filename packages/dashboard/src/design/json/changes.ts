/** Which places of a JSON value have changed, by JSON pointer. */

/** `self`: the value itself, or a key of it is gone; `inside`: something in it. */
export type Changes = ReadonlyMap<string, 'self' | 'inside'>

export const noChanges: Changes = new Map()

export const pointerOf = (parent: string, key: string): string =>
  `${parent}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`

type Container = Readonly<Record<string, unknown>>

/** An object or array with its values by key; null for anything else. */
export const asContainer = (value: unknown): Container | null =>
  typeof value === 'object' && value !== null ? (value as Container) : null

/** The places that differ. Values that are the same object are not compared. */
export function changesBetween(before: unknown, after: unknown): Changes {
  const changes = new Map<string, 'self' | 'inside'>()
  compare(before, after, '', changes)
  return changes
}

/** Whether the values differ. */
function compare(before: unknown, after: unknown, pointer: string, changes: Map<string, 'self' | 'inside'>): boolean {
  if (Object.is(before, after)) return false
  const [one, other] = [asContainer(before), asContainer(after)]
  if (one === null || other === null || Array.isArray(one) !== Array.isArray(other)) {
    changes.set(pointer, 'self')
    return true
  }
  const hasLost = Object.keys(one).some((key) => !Object.hasOwn(other, key))
  let isChanged = hasLost
  for (const [key, value] of Object.entries(other)) {
    if (!Object.hasOwn(one, key)) {
      changes.set(pointerOf(pointer, key), 'self')
      isChanged = true
    } else if (compare(one[key], value, pointerOf(pointer, key), changes)) isChanged = true
  }
  if (isChanged) changes.set(pointer, hasLost ? 'self' : 'inside')
  return isChanged
}
