/**
 * An estimate of the key that has a share of all keys before it, from the first and the last key: for tables so large
 * that counting to a row takes too long. It is as good as the keys are evenly distributed.
 */

/** Characters after the common beginning that the estimate of a text considers: more than a double can tell apart. */
const charsWeighed = 8
/** Characters of keys are mostly ASCII. */
const radix = 128

const weigh = (text: string): number => {
  let sum = 0
  for (let at = 0; at < charsWeighed; at++) sum = sum * radix + Math.min(radix - 1, text.charCodeAt(at) || 0)
  return sum
}

const unweigh = (sum: number): string => {
  let rest = Math.floor(sum)
  let text = ''
  for (let at = 0; at < charsWeighed; at++) {
    const code = rest % radix
    // NUL and other controls are no part of keys; one below them sorts the same among those that are.
    text = String.fromCharCode(Math.max(code, 32)) + text
    rest = Math.floor(rest / radix)
  }
  return text
}

/** Null for keys that cannot be estimated, such as booleans. */
export function estimateKey(first: unknown, last: unknown, share: number): string | number | null {
  if (typeof first === 'number' && typeof last === 'number') return first + (last - first) * share
  if (typeof first !== 'string' || typeof last !== 'string') return null
  let common = 0
  while (common < first.length && first[common] === last[common]) common += 1
  const [from, to] = [weigh(first.slice(common)), weigh(last.slice(common))]
  return first.slice(0, common) + unweigh(from + (to - from) * share).trimEnd()
}

/** The same of times, whose texts are no numbers. */
export function estimateTime(first: unknown, last: unknown, share: number): string | null {
  const [from, to] = [Date.parse(String(first)), Date.parse(String(last))]
  return Number.isNaN(from) || Number.isNaN(to) ? null : new Date(from + (to - from) * share).toISOString()
}
