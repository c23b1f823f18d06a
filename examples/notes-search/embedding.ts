/**
 * Texts as vectors, without a model from anywhere: what a hundred lines of statistics over the collection itself can
 * do. Texts that share rare words, parts of words, or the company that their words keep come out near each other. It
 * knows nothing of the world beyond the collection, and is no match for a neural model; where you have one, it goes in
 * here and nothing else changes. The same texts always give the same vectors.
 */

export interface Embedding {
  /** Of length 1, or all zeros for a text without words. */
  embed(text: string): number[]
}

export const dimensions = 256
/** Names what the vectors were made by; another name has them made anew. */
export const embeddingVersion = 'context-1'

/** Signs that a feature has in the space; a handful keeps different features nearly at right angles. */
const signsPerFeature = 8
/** How much of a word's vector is the word itself, its parts, and the company it keeps. */
const weights = { word: 1, parts: 0.8, company: 1.1 }
/** Words this rare have no company to speak of. */
const companyNotesMin = 3

/** Words that say nothing of what a text is about. */
const emptyWords = new Set(
  'a an and are as at be been by can for from has have in into is it its no not of off on one or other out over s such some that the their them then these they this those to up used use using was were what when where which while who with without'.split(
    ' ',
  ),
)

/** Lower case, without accents, in order. */
export const wordsOf = (text: string): string[] =>
  (
    text
      .normalize('NFKD')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  ).filter((word) => !emptyWords.has(word))

/** Learns from the collection how rare each word is, and what company it keeps: about a second for 14,000 texts. */
export function createEmbedding(texts: readonly string[]): Embedding {
  const notes = texts.map((text) => [...new Set(wordsOf(text))])
  const counts = new Map<string, number>()
  for (const words of notes) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  /** Rare words weigh more; one that was never seen weighs as much as the rarest. */
  const rarityOf = (word: string): number => Math.log(1 + texts.length / (counts.get(word) ?? 1))

  const company = new Map<string, Float32Array>()
  for (const words of notes) {
    const whole = new Float32Array(dimensions)
    for (const word of words) addFeature(whole, word, rarityOf(word))
    for (const word of words) {
      if ((counts.get(word) ?? 0) < companyNotesMin) continue
      let sum = company.get(word)
      if (!sum) {
        sum = new Float32Array(dimensions)
        company.set(word, sum)
      }
      add(sum, whole, 1 / (1 + words.length))
      // The word itself is no company of its own.
      addFeature(sum, word, -rarityOf(word) / (1 + words.length))
    }
  }
  for (const sum of company.values()) scaleToOne(sum)

  const known = new Map<string, Float32Array>()
  function vectorOf(word: string): Float32Array {
    const found = known.get(word)
    if (found) return found
    const vector = new Float32Array(dimensions)
    const parts = partsOf(word)
    for (const part of parts) addFeature(vector, part, weights.parts / Math.sqrt(parts.length))
    addFeature(vector, word, weights.word)
    const neighbours = company.get(word)
    if (neighbours) add(vector, neighbours, weights.company)
    if (counts.has(word)) known.set(word, vector)
    return vector
  }

  return {
    embed(text) {
      const vector = new Float32Array(dimensions)
      for (const word of wordsOf(text)) add(vector, vectorOf(word), rarityOf(word))
      scaleToOne(vector)
      return Array.from(vector, (value) => Math.round(value * 1e5) / 1e5)
    },
  }
}

/** Three and four letters in a row, with marks for where the word begins and ends. */
function partsOf(word: string): string[] {
  const marked = `<${word}>`
  return [3, 4].flatMap((length) =>
    Array.from({ length: Math.max(0, marked.length - length + 1) }, (_, at) => marked.slice(at, at + length)),
  )
}

const add = (sum: Float32Array, other: Float32Array, weight: number): void => {
  for (let at = 0; at < dimensions; at++) sum[at] = (sum[at] as number) + (other[at] as number) * weight
}

/** Adds a feature's direction: a few signs at places that its name decides. */
function addFeature(sum: Float32Array, name: string, weight: number): void {
  const each = weight / Math.sqrt(signsPerFeature)
  let state = hash(name)
  for (let sign = 0; sign < signsPerFeature; sign++) {
    state = scramble(state)
    const at = (state >>> 1) % dimensions
    sum[at] = (sum[at] as number) + (state & 1 ? each : -each)
  }
}

function scaleToOne(vector: Float32Array): void {
  let squares = 0
  for (const value of vector) squares += value * value
  if (squares === 0) return
  const factor = 1 / Math.sqrt(squares)
  for (let at = 0; at < dimensions; at++) vector[at] = (vector[at] as number) * factor
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  return scramble(state)
}

/** Every bit of the state has a say in every bit of the next. */
function scramble(state: number): number {
  let next = (state + 0x6d2b79f5) | 0
  next = Math.imul(next ^ (next >>> 15), next | 1)
  next ^= next + Math.imul(next ^ (next >>> 7), next | 61)
  return (next ^ (next >>> 14)) >>> 0
}
