import { expect, test } from 'bun:test'
import { findMistakes, parseConfig } from '../../validate.ts'

const mistakesIn = (vector: unknown): readonly string[] => findMistakes({ vector }, 'k'.repeat(32))

test('what is left out has its defaults', () => {
  const { config } = parseConfig({ vector: { docs: { dimensions: 384 } } }, { mode: 'release', rootKey: '' })
  expect([...config.vector]).toEqual([
    ['docs', { name: 'docs', dimensions: 384, metric: 'cosine', metadataIndexes: [], engine: 'auto' }],
  ])
  expect(parseConfig({}, { mode: 'release', rootKey: '' }).config.vector.size).toBe(0)
})

test('everything can be said', () => {
  const written = {
    dimensions: 4096,
    metric: 'dot-product',
    metadataIndexes: ['lang', 'Größe', 'a-b c_1'],
    engine: 'memory',
  }
  expect(mistakesIn({ docs: written, 'other-2': { ...written, metric: 'euclidean', engine: 'auto' } })).toEqual([])
})

const mistakes: readonly (readonly [string, unknown, string])[] = [
  ['no object', [], 'vector: must be an object, not a list'],
  ['an index that is none', { docs: 384 }, 'vector.docs: must be an object, not a number'],
  ['no dimensions', { docs: {} }, 'vector.docs.dimensions: is missing'],
  ['no dimension', { docs: { dimensions: 0 } }, 'vector.docs.dimensions: must be at least 1'],
  ['too many', { docs: { dimensions: 4097 } }, 'vector.docs.dimensions: must be at most 4096'],
  ['a part of one', { docs: { dimensions: 1.5 } }, 'vector.docs.dimensions: must be a whole number, not 1.5'],
  [
    'another metric',
    { docs: { dimensions: 3, metric: 'dotproduct' } },
    'vector.docs.metric: must be one of cosine, euclidean, dot-product. Did you mean "dot-product"?',
  ],
  [
    'another key',
    { docs: { dimensions: 3, metadataIndex: ['a'] } },
    'vector.docs.metadataIndex: is not known here. Did you mean "metadataIndexes"?',
  ],
  [
    'a field that is no text',
    { docs: { dimensions: 3, metadataIndexes: [1] } },
    'vector.docs.metadataIndexes[0]: must be text, not a number',
  ],
  ...['', '$gt', 'a.b', '"a"', 'a\0', '__proto__', 'constructor', 'x'.repeat(65)].map(
    (field) =>
      [
        `the field ${JSON.stringify(field.slice(0, 20))}`,
        { docs: { dimensions: 3, metadataIndexes: ['a', field] } },
        'vector.docs.metadataIndexes[1]: must be letters, digits, "_", "-" and spaces, at most 64 together',
      ] as const,
  ),
  [
    'a field twice',
    { docs: { dimensions: 3, metadataIndexes: ['a', 'b', 'a'] } },
    'vector.docs.metadataIndexes[2]: is there already: "a"',
  ],
  [
    'too many fields',
    { docs: { dimensions: 3, metadataIndexes: Array.from({ length: 17 }, (_, at) => `f${at}`) } },
    'vector.docs.metadataIndexes: must have at most 16 fields',
  ],
  [
    'a name that is none',
    { 'my docs': { dimensions: 3 } },
    'vector["my docs"]: must be a letter or digit, then letters, digits, "_" and "-", at most 63 together',
  ],
  [
    'names that differ in case alone',
    { docs: { dimensions: 3 }, Docs: { dimensions: 3 } },
    'vector.Docs: differs from "docs" only in upper and lower case',
  ],
  [
    'more than pgvector takes',
    { docs: { dimensions: 3072, engine: 'pgvector' } },
    'vector.docs.engine: can be "pgvector" up to 2000 dimensions',
  ],
]
test.each(mistakes)('%s is reported with its path', (_, written, message) => {
  expect(mistakesIn(written)).toEqual([message])
})
