/** Errors in a configuration, each with its path; all of them are reported at once. */

/** Keys and indexes from the root of the configuration. */
export type Path = readonly PropertyKey[]

export interface ConfigIssue {
  readonly path: Path
  /** Without a subject, because the path is printed before it. */
  readonly message: string
}

/** An invalid configuration. The message has one line per issue. */
export class ConfigError extends Error {
  constructor(
    message: string,
    /** Absolute paths of other files that may contain the error. */
    readonly files: readonly string[] = [],
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'ConfigError'
  }
}

/** `databases.shared.tables.posts.indexes[0]`; keys that are not identifiers are quoted. */
export function formatPath(path: Path): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`
    else if (/^[A-Za-z_$][\w$]*$/.test(String(key))) text += text === '' ? String(key) : `.${String(key)}`
    else text += `[${JSON.stringify(String(key))}]`
  }
  return text
}

export const formatIssue = ({ path, message }: ConfigIssue): string =>
  path.length === 0 ? message : `${formatPath(path)}: ${message}`

/** ` Did you mean "type"?` for the candidate nearest to a misspelled word; empty if none is near. */
export function suggest(word: string, candidates: Iterable<string>): string {
  let best: string | null = null
  // A third of the letters may differ: enough for typos, too few to turn one word into another.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best === null ? '' : ` Did you mean "${best}"?`
}

/** Names are short; this bounds the work for long ones. */
const comparedCharsMax = 64

/** Damerau–Levenshtein distance: insertions, deletions, replacements and swaps of neighbors. */
function editDistance(a: string, b: string): number {
  if (a.length > comparedCharsMax || b.length > comparedCharsMax) return Number.POSITIVE_INFINITY
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(at(previous, j) + 1, at(current, j - 1) + 1, replaced)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(before, j - 2) + 1)
      current.push(least)
    }
    before = previous
    previous = current
  }
  return at(previous, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] as number
