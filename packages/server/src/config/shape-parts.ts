/**
 * Building blocks of the configuration's schemas, shared by several sections.
 */
import { z } from 'zod'
import type { Rule } from '../access/definition.ts'
import { parseByteSize } from '../base/text/bytes.ts'
import { isJsonObject } from '../base/text/json.ts'
import { suggest } from './issues.ts'

/**
 * An object that refuses unknown keys: a misspelled section that is silently ignored could be one that restricts
 * access.
 */
export function strictObject<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const known = Object.keys(shape)
  const explain = (key: string): string => `is not known here.${suggest(key, known) || ` Known: ${known.join(', ')}.`}`
  return z.strictObject(shape, {
    // One line per key, in their order, which `mistakesOf` takes apart again.
    error: (issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map(explain).join('\n') : undefined),
  })
}

/** A text that `read` parses; the message of its exception becomes the issue. */
export const parsedWith = <T>(read: (text: string) => T) =>
  z.string().transform((text, context) => {
    try {
      return read(text)
    } catch (error) {
      context.addIssue(error instanceof Error ? error.message : String(error))
      return z.NEVER
    }
  })

export const byteSize = z.union([z.int().min(1), parsedWith(parseByteSize)], {
  error: 'must be a size such as "5mb", or a number of bytes',
})

export const isFunction = (value: unknown): boolean => typeof value === 'function'
/** Such a rule would return a promise, which is truthy. */
export const isAsynchronous = (value: unknown): boolean =>
  isFunction(value) && /^(?:Async|Generator)/.test((value as () => void).constructor?.name)

export const ruleShape = z
  .custom<Rule>((value) => typeof value === 'boolean' || isFunction(value), 'must be true, false or a function')
  .refine((value) => !isAsynchronous(value), 'must not be asynchronous')

/** The entries of a value that may not be an object, since it is not validated yet. */
export const membersOf = (value: unknown): [string, unknown][] => (isJsonObject(value) ? Object.entries(value) : [])
