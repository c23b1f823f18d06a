/** The section `kv`: what users write, its shape, and the form the key-value stores run on. */
import { z } from 'zod'
import { parseByteSize } from '../../../base/text/bytes.ts'
import { kvValueBytes, kvValueBytesMax, kvWriteIntervalMs, kvWriteIntervalMsMax } from '../../../limits/resources.ts'
import type { ConfigIssue } from '../../issues.ts'
import { findNameMistake } from '../../names.ts'
import { membersOf, parsedWith, strictObject } from '../../shape-parts.ts'

/** A key-value store. */
export interface KvNamespace {
  readonly name: string
  /** Between two writes of one key; 0 for no such limit. */
  readonly writeIntervalMs: number
  /** Of one value, as JSON in UTF-8. */
  readonly valueBytesMax: number
}

const valueSize = z
  .union([z.int().min(1), parsedWith(parseByteSize)], { error: 'must be a size such as "1mb", or a number of bytes' })
  .refine((bytes) => bytes <= kvValueBytesMax, 'must be at most 4mb')

const storeShape = strictObject({
  writeInterval: z.int().min(0).max(kvWriteIntervalMsMax).default(kvWriteIntervalMs),
  maxValueSize: valueSize.default(kvValueBytes),
})

export const kvShape = z.record(z.string(), storeShape)
export type WrittenKv = z.output<typeof storeShape>

/** What is wrong with the section beyond its shape. */
export function checkKv(written: unknown): ConfigIssue[] {
  return membersOf(written).flatMap(([name]): ConfigIssue[] => {
    const message = findNameMistake(name)
    return message === null ? [] : [{ path: ['kv', name], message }]
  })
}

/** A store in which nothing was found wrong. */
export const createKvNamespace = (name: string, { writeInterval, maxValueSize }: WrittenKv): KvNamespace =>
  Object.freeze({ name, writeIntervalMs: writeInterval, valueBytesMax: maxValueSize })
