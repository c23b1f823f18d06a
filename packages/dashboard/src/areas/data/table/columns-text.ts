/**
 * The shown columns as a parameter of the URL: their names in order. Neighbors in the order of the table are written as
 * `first..last`, so that a table of 500 columns with one hidden or moved still has a short address.
 */

/** Shorter runs are written out, which is as short and easier to read. */
const runMin = 4
const rangeMark = '..'

export function formatColumns(shown: readonly string[], names: readonly string[]): string {
  const places = new Map(names.map((name, at) => [name, at]))
  const parts: string[] = []
  for (let at = 0; at < shown.length; ) {
    const place = places.get(shown[at] as string) ?? Number.NaN
    let end = at + 1
    while (end < shown.length && places.get(shown[end] as string) === place + end - at) end += 1
    const run = shown.slice(at, end)
    parts.push(...(run.length < runMin ? run : [`${run[0]}${rangeMark}${run.at(-1)}`]))
    at = end
  }
  return parts.join(',')
}

/** Names that the table does not have are kept: they may be those of fields that no loaded row has. */
export function parseColumns(text: string, names: readonly string[]): readonly string[] {
  const places = new Map(names.map((name, at) => [name, at]))
  const found = text.split(',').flatMap((part): readonly string[] => {
    if (places.has(part) || !part.includes(rangeMark)) return [part]
    const [first, last] = part.split(rangeMark).map((name) => places.get(name))
    return first === undefined || last === undefined ? [part] : names.slice(first, last + 1)
  })
  return [...new Set(found)]
}
