/** Typos: letters to insert, leave out, replace or swap with the next in order to turn a word into another. */
import { oneTypoCharsMin, twoTyposCharsMin, typoCharsMax } from '../../../limits/api.ts'

/** How many typos a searched word may have; none in numbers, where each digit counts. */
export function typosAllowed(folded: string, chars: number): 0 | 1 | 2 {
  if (chars < oneTypoCharsMin || chars > typoCharsMax || /\p{N}/u.test(folded)) return 0
  return chars < twoTyposCharsMin ? 1 : 2
}

/**
 * The typos between two words, given as code points (the optimal string alignment distance), or null if there are more
 * than `most`. The first letter must be right: the words of an index with the same first letter are in one place.
 */
export function countTypos(word: readonly string[], other: readonly string[], most: number): number | null {
  if (word[0] !== other[0] || Math.abs(word.length - other.length) > most) return null
  let twoAbove: number[] = []
  let above = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= word.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= other.length; j++) {
      const isSame = word[i - 1] === other[j - 1]
      let typos = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1])
        typos = Math.min(typos, (twoAbove[j - 2] ?? 0) + 1)
      row.push(typos)
      least = Math.min(least, typos)
    }
    // A swap may go back two rows, but then costs what the row above it has and one more.
    if (least > most) return null
    twoAbove = above
    above = row
  }
  const typos = above[other.length] ?? most + 1
  return typos <= most ? typos : null
}
