/** The section `vector`: what users write, its shape, and the form vector indexes run on. */
import { z } from 'zod'
import {
  pgvectorDimensionsMax,
  vectorDimensionsMax,
  vectorFieldNameCharsMax,
  vectorMetadataIndexesMax,
} from '../../../limits/resources.ts'
import type { ConfigIssue } from '../../issues.ts'
import { findTwins } from '../../names.ts'
import { membersOf, strictObject } from '../../shape-parts.ts'

const metrics = ['cosine', 'euclidean', 'dot-product'] as const
const engines = ['auto', 'memory', 'pgvector'] as const

/** A vector index. */
export interface VectorIndexDefinition {
  readonly name: string
  readonly dimensions: number
  readonly metric: (typeof metrics)[number]
  readonly metadataIndexes: readonly string[]
  readonly engine: (typeof engines)[number]
}

const indexShape = strictObject({
  dimensions: z.int().min(1).max(vectorDimensionsMax),
  metric: z.enum(metrics).default('cosine'),
  metadataIndexes: z.array(z.string()).default([]),
  engine: z.enum(engines).default('auto'),
})

export const vectorShape = z.record(z.string(), indexShape)
export type WrittenVectorIndex = z.output<typeof indexShape>

/** The name stands in paths, in the scopes of service keys and in names of files. */
const indexNamePattern = /^[A-Za-z0-9][\w-]{0,62}$/

/** What may be written before an operator, and nothing that means something to JavaScript objects. */
const isFieldName = (name: unknown): boolean =>
  typeof name === 'string' &&
  /^[\p{L}\p{N}_][\p{L}\p{N}_ -]*$/u.test(name) &&
  name.length <= vectorFieldNameCharsMax &&
  !['__proto__', 'constructor', 'prototype'].includes(name)

/** What is wrong with the section beyond its shape. */
export function checkVector(written: unknown): ConfigIssue[] {
  const indexes = membersOf(written)
  const mistakes = findTwins(indexes.map(([name]) => name)).map(
    ([later, earlier]): ConfigIssue => ({
      path: ['vector', later],
      message: `differs from "${earlier}" only in upper and lower case`,
    }),
  )
  for (const [name, index] of indexes) {
    const path = ['vector', name]
    if (!indexNamePattern.test(name))
      mistakes.push({
        path,
        message: 'must be a letter or digit, then letters, digits, "_" and "-", at most 63 together',
      })
    const { dimensions, engine, metadataIndexes } = Object.fromEntries(membersOf(index))
    if (engine === 'pgvector' && Number(dimensions) > pgvectorDimensionsMax)
      mistakes.push({
        path: [...path, 'engine'],
        message: `can be "pgvector" up to ${pgvectorDimensionsMax} dimensions`,
      })
    if (Array.isArray(metadataIndexes)) mistakes.push(...checkFields(metadataIndexes, [...path, 'metadataIndexes']))
  }
  return mistakes
}

function checkFields(fields: readonly unknown[], path: readonly string[]): ConfigIssue[] {
  const mistakes: ConfigIssue[] = []
  if (fields.length > vectorMetadataIndexesMax)
    mistakes.push({ path, message: `must have at most ${vectorMetadataIndexesMax} fields` })
  for (const [at, field] of fields.entries()) {
    if (typeof field === 'string' && !isFieldName(field))
      mistakes.push({
        path: [...path, at],
        message: 'must be letters, digits, "_", "-" and spaces, at most 64 together',
      })
    if (fields.indexOf(field) < at) mistakes.push({ path: [...path, at], message: `is there already: "${field}"` })
  }
  return mistakes
}

/** An index in which nothing was found wrong. */
export const createVectorIndexDefinition = (name: string, written: WrittenVectorIndex): VectorIndexDefinition =>
  Object.freeze({ name, ...written, metadataIndexes: Object.freeze(written.metadataIndexes) })
