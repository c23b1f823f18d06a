/**
 * Text embeddings from statistics of the collection, without a downloaded model. Texts are similar if they share rare
 * words, n-grams, or words with a similar context. The embeddings contain no knowledge beyond the collection; a neural
 * model gives better results and can replace this file. The same texts always produce the same vectors.
 */

export interface Embedding {
  /** Of length 1, or all zeros for a text without words. */
  embed(text: string): number[]
}

export const dimensions = 256
/** The version of the algorithm. When it changes, the next start recomputes the vectors. */
export const embeddingVersion = 'context-1'

/** Nonzero components of a random feature vector; a few suffice to make different features nearly orthogonal. */
const signsPerFeature = 8
/** Weights of the word itself, its n-grams and its context in its vector. */
const weights = { word: 1, ngrams: 0.8, context: 1.1 }
/** Words in fewer notes have too little context. */
const contextNotesMin = 3

/** Words without meaning for a search. */
const stopWords = new Set(
  'a an and are as at be been by can for from has have in into is it its no not of off on one or other out over s such some that the their them then these they this those to up used use using was were what when where which while who with without'.split(
    ' ',
  ),
)

/** The words of a text in order, in lower case, without accents and stop words. */
export const wordsOf = (text: string): string[] =>
  (
    text
      .normalize('NFKD')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  ).filter((word) => !stopWords.has(word))

/** Computes the rarity and the context of each word; takes about a second for 14,000 texts. */
export function createEmbedding(texts: readonly string[]): Embedding {
  const notes = texts.map((text) => [...new Set(wordsOf(text))])
  const counts = new Map<string, number>()
  for (const words of notes) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  /** Inverse document frequency; an unknown word weighs as much as the rarest one. */
  const rarityOf = (word: string): number => Math.log(1 + texts.length / (counts.get(word) ?? 1))

  const contexts = new Map<string, Float32Array>()
  for (const words of notes) {
    const all = new Float32Array(dimensions)
    for (const word of words) addFeature(all, word, rarityOf(word))
    for (const word of words) {
      if ((counts.get(word) ?? 0) < contextNotesMin) continue
      let sum = contexts.get(word)
      if (!sum) {
        sum = new Float32Array(dimensions)
        contexts.set(word, sum)
      }
      add(sum, all, 1 / (1 + words.length))
      // Excludes the word from its own context.
      addFeature(sum, word, -rarityOf(word) / (1 + words.length))
    }
  }
  for (const sum of contexts.values()) scaleToOne(sum)

  const known = new Map<string, Float32Array>()
  function vectorOf(word: string): Float32Array {
    const found = known.get(word)
    if (found) return found
    const vector = new Float32Array(dimensions)
    const ngrams = ngramsOf(word)
    for (const ngram of ngrams) addFeature(vector, ngram, weights.ngrams / Math.sqrt(ngrams.length))
    addFeature(vector, word, weights.word)
    const context = contexts.get(word)
    if (context) add(vector, context, weights.context)
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

/** Sequences of three and four letters, with markers for the start and end of the word. */
function ngramsOf(word: string): string[] {
  const marked = `<${word}>`
  return [3, 4].flatMap((length) =>
    Array.from({ length: Math.max(0, marked.length - length + 1) }, (_, at) => marked.slice(at, at + length)),
  )
}

const add = (sum: Float32Array, other: Float32Array, weight: number): void => {
  for (let at = 0; at < dimensions; at++) sum[at] = (sum[at] as number) + (other[at] as number) * weight
}

/** Adds the random vector of a feature: a few signs at positions derived from a hash of its name. */
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

/** Mixes the bits of the state. */
function scramble(state: number): number {
  let next = (state + 0x6d2b79f5) | 0
  next = Math.imul(next ^ (next >>> 15), next | 1)
  next ^= next + Math.imul(next ^ (next >>> 7), next | 61)
  return (next ^ (next >>> 14)) >>> 0
}
