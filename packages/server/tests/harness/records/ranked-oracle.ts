/** Searches with a ranking, as the rules describe them: naive, without an index, for comparison with the engines. */

export interface OracleOptions {
  /** Fields with their weights. */
  readonly weights: Readonly<Record<string, number>>
  readonly typos: boolean
  readonly prefix: boolean
  readonly substring: boolean
}

interface Token {
  readonly text: string
  readonly isUnspaced: boolean
}

const fold = (text: string): string => text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '').normalize('NFC')
const isUnspacedCharacter = (character: string): boolean =>
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}]/u.test(character)

/** Words character by character: a mark belongs to what it follows. */
export function tokensOf(text: string): Token[] {
  const tokens: { raw: string; isUnspaced: boolean }[] = []
  let open: { raw: string; isUnspaced: boolean } | null = null
  for (const character of text) {
    if (!/[\p{L}\p{N}\p{M}\p{Co}]/u.test(character)) {
      open = null
      continue
    }
    const isUnspaced: boolean =
      /\p{M}/u.test(character) && open !== null ? open.isUnspaced : isUnspacedCharacter(character)
    if (open === null || open.isUnspaced !== isUnspaced) {
      open = { raw: '', isUnspaced }
      tokens.push(open)
    }
    open.raw += character
  }
  return tokens.map(({ raw, isUnspaced }) => ({ text: fold(raw), isUnspaced })).filter(({ text }) => text !== '')
}

/** Insertions, deletions, replacements and swaps of neighbors, without a second change of what was swapped. */
export function distance(a: readonly string[], b: readonly string[]): number {
  const known = new Map<string, number>()
  const from = (i: number, j: number): number => {
    if (i === 0 || j === 0) return i + j
    const key = `${i},${j}`
    const found = known.get(key)
    if (found !== undefined) return found
    const same = a[i - 1] === b[j - 1] ? 0 : 1
    const ways = [from(i - 1, j) + 1, from(i, j - 1) + 1, from(i - 1, j - 1) + same]
    if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) ways.push(from(i - 2, j - 2) + 1)
    known.set(key, Math.min(...ways))
    return Math.min(...ways)
  }
  return from(a.length, b.length)
}

/** The quality of a match of one token with another: 4 to 0, or null. */
function qualityOf(requested: Token, isLast: boolean, token: Token, options: OracleOptions): number | null {
  if (requested.isUnspaced !== token.isUnspaced) return null
  if (requested.isUnspaced) return token.text.includes(requested.text) ? 4 : null
  if (token.text === requested.text) return 4
  if (options.prefix && isLast && token.text.startsWith(requested.text)) return 3
  const [a, b] = [[...requested.text], [...token.text]]
  if (options.substring && a.length >= 3 && token.text.includes(requested.text)) return 2
  const allowed = !options.typos || a.length < 4 || /\p{N}/u.test(requested.text) ? 0 : a.length < 8 ? 1 : 2
  if (allowed === 0 || a[0] !== b[0]) return null
  const typos = distance(a, b)
  return typos <= allowed ? 2 - typos : null
}

/** The ids of the rows that a search finds, in order. */
export function rankedIds(
  rows: readonly (Readonly<Record<string, string | null>> & { readonly id: string })[],
  q: string,
  options: OracleOptions,
): string[] {
  const requested = tokensOf(q)
  const [weightiest = ''] = Object.entries(options.weights).toSorted(([, a], [, b]) => b - a)[0] ?? []
  const lastAt = requested.length - 1
  const isLastToken = (at: number): boolean => at === lastAt && !requested[at]?.isUnspaced
  const distinct = new Map(
    requested.map((token, at) => [`${token.text} ${isLastToken(at) && options.prefix}`, { token, at }]),
  )
  if (distinct.size === 0) return []
  const found: { id: string; quality: number; weight: number; chars: number }[] = []
  for (const row of rows) {
    let [quality, weight] = [0, 0]
    const isFound = [...distinct.values()].every(({ token, at }) => {
      let best: [number, number] | null = null
      for (const [field, fieldWeight] of Object.entries(options.weights))
        for (const one of tokensOf(row[field] ?? '')) {
          const matched = qualityOf(token, isLastToken(at), one, options)
          if (matched === null) continue
          if (!best || matched > best[0] || (matched === best[0] && fieldWeight > best[1]))
            best = [matched, fieldWeight]
        }
      if (!best) return false
      quality += best[0]
      weight += best[1]
      return true
    })
    if (isFound) found.push({ id: row.id, quality, weight, chars: [...(row[weightiest] ?? '')].length })
  }
  return found
    .toSorted(
      (a, b) =>
        b.quality - a.quality || b.weight - a.weight || a.chars - b.chars || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
    )
    .map(({ id }) => id)
}
