/**
 * Schemas of query parameters. Each transforms the text of a parameter into its value; parsing, error messages and
 * OpenAPI (type, bounds, default) come from the same declaration.
 */
import { z } from '../../base/schemas/z.ts'
import { findDatetime } from '../../base/text/datetime.ts'

/** An optional text that the feature parses. */
export const textParam = (description: string) => z.string().optional().meta({ description })

/** The texts of a JSON array; null for anything else. */
export function parseTexts(text: string): readonly string[] | null {
  try {
    const texts: unknown = JSON.parse(text)
    return Array.isArray(texts) && texts.every((one) => typeof one === 'string') ? texts : null
  } catch {
    return null
  }
}

/** An optional list, which clients may also send as a JSON array of texts. Its value is separated by commas. */
export const listParam = (description: string) =>
  z
    .string()
    .optional()
    .transform((text) => (text?.startsWith('[') ? (parseTexts(text)?.join() ?? text) : text))
    .meta({ type: 'string', description: `${description}, or a JSON array` })

/** A parameter that has no effect, so that one query string serves several endpoints. */
export const ignoredParam = (of: string) =>
  z
    .string()
    .optional()
    .transform(() => undefined)
    .meta({ type: 'string', description: `Ignored: a parameter of ${of}` })

/** The cursor of a page: opaque text that `list-cursor` verifies. */
export const cursorParam = (description = '`cursor` of the previous page') => textParam(description)

/** Metadata with the default for OpenAPI: zod drops its own `default` from the input type of a transformation. */
export const defaultKey = 'x-plinth-default'

export interface IntegerBounds {
  readonly description?: string
  /** Inclusive; 1 unless given. */
  readonly min?: number
  /** Inclusive. */
  readonly max?: number
  /** Whether a number above `max` is clamped instead of refused. */
  readonly clamps?: boolean
  /** The default in OpenAPI. `limitParam` applies it; otherwise the feature does. */
  readonly default?: number
}

const integerPattern = /^-?\d{1,16}$/

function describeInteger({ min = 1, max, clamps = false, description, default: fallback }: IntegerBounds) {
  const note = max !== undefined && clamps ? `more counts as ${max}` : ''
  const text = [description ?? '', note].filter((part) => part !== '').join('; ')
  return {
    type: 'integer',
    minimum: min,
    ...(max === undefined ? {} : { maximum: max }),
    ...(fallback === undefined ? {} : { [defaultKey]: fallback }),
    ...(text === '' ? {} : { description: text }),
  }
}

/** The number, or the issue that names the bounds: `must be a whole number from 1 to 100`. */
function parseInteger(text: string, bounds: IntegerBounds, context: z.RefinementCtx): number {
  const { min = 1, max, clamps = false } = bounds
  const value = integerPattern.test(text) ? Number(text) : Number.NaN
  const isNumber = Number.isSafeInteger(value)
  if (isNumber && value >= min && (max === undefined || value <= max)) return value
  if (isNumber && value > min && max !== undefined && clamps) return max
  const message = `must be a whole number ${max === undefined ? `of at least ${min}` : `from ${min} to ${max}`}`
  const code = isNumber ? (value < min ? 'min' : 'max') : 'type'
  context.addIssue({ code: 'custom', message, params: { code } })
  return z.NEVER
}

/** A required integer. */
export const requiredIntegerParam = (bounds: IntegerBounds = {}) =>
  z
    .string()
    .transform((text, context) => parseInteger(text, bounds, context))
    .meta(describeInteger(bounds))

/** An optional integer. */
export const integerParam = (bounds: IntegerBounds = {}) =>
  z
    .string()
    .optional()
    .transform((text, context) => (text === undefined ? undefined : parseInteger(text, bounds, context)))
    .meta(describeInteger(bounds))

/** The page size: from 1 to `max`, `default` if absent. Clamped above `max` unless `clamps` is false. */
export function limitParam(bounds: IntegerBounds & { readonly default: number; readonly max: number }) {
  const all = { clamps: true, ...bounds }
  return z
    .string()
    .optional()
    .transform((text, context) => (text === undefined ? bounds.default : parseInteger(text, all, context)))
    .meta(describeInteger(all))
}

/** `true` or `false`; false if absent. */
export const booleanParam = (description: string) =>
  z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined || text === 'false') return false
      if (text === 'true') return true
      context.addIssue({ code: 'custom', message: 'must be true or false', params: { code: 'enum' } })
      return z.NEVER
    })
    .meta({ type: 'boolean', [defaultKey]: false, description })

/** A flag that is set with `1`; false if absent. */
export const flagParam = (description: string) =>
  z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined || text === '0') return false
      if (text === '1') return true
      context.addIssue({ code: 'custom', message: 'must be 1 or 0', params: { code: 'enum' } })
      return z.NEVER
    })
    .meta({ type: 'string', enum: ['0', '1'], [defaultKey]: '0', description })

/** An optional instant, in milliseconds since 1970. */
export const datetimeParam = (description: string) =>
  z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined) return undefined
      const found = findDatetime(text)
      if (found !== null) return Date.parse(found)
      context.addIssue({ code: 'custom', message: 'must be an ISO 8601 date or time', params: { code: 'type' } })
      return z.NEVER
    })
    .meta({ type: 'string', format: 'date-time', description })

/** An optional enum value. An empty text is invalid, not absent. */
export const wordParam = <const Word extends string>(words: readonly Word[], description?: string) =>
  z.enum(words).optional().meta({ description })

/** An enum value; `fallback` if absent. */
export const wordParamOr = <const Word extends string>(
  words: readonly Word[],
  fallback: NoInfer<Word>,
  description?: string,
) =>
  z
    .enum(words)
    .optional()
    .transform((word): Word => word ?? fallback)
    .meta({ [defaultKey]: fallback, description })
