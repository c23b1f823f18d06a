/** The declaration of one field: which options its type has, whether they agree, and the field that comes of it. */
import { findDatetime } from '../../../base/text/datetime.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { jsonDepthMax } from '../../../limits/api.ts'
import { findLocation, locationShape } from '../../../query/geo/sphere.ts'
import type { Field, FieldType } from '../../../query/table.ts'
import type { ConfigIssue, Path } from '../../issues.ts'
import type { WrittenField } from '../../shape.ts'

type Option = Exclude<keyof WrittenField, 'type' | 'required' | 'default' | 'computed'>

/** Options beyond `type`, `required` and `default`. */
const optionsOf: Readonly<Record<FieldType, readonly Option[]>> = {
  string: ['unique', 'min', 'max', 'pattern', 'enum', 'references'],
  text: ['unique', 'min', 'max', 'pattern', 'enum'],
  number: ['unique', 'min', 'max', 'enum'],
  boolean: ['unique'],
  datetime: ['unique'],
  json: [],
  geo: ['index'],
}
const allOptions: readonly Option[] = ['unique', 'min', 'max', 'pattern', 'enum', 'references', 'index']
/** What a computed field has beyond its type. Others bound what a client may write. */
const computedOptions: readonly Option[] = ['unique']
const writtenOptions = ['required', 'default', ...allOptions.filter((name) => !computedOptions.includes(name))] as const

/**
 * A group that holds nothing but one repeated character or class, and is repeated itself: how such a text can be split
 * up doubles with each character, and all ways are tried before it is refused. Other slow patterns are the author's.
 */
const repeatedRepetition = new RegExp(
  [
    String.raw`(?<!\\)\((?:\?(?::|<\w+>))?`,
    String.raw`(?:\\[pP]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|[^\\()[\]{}|*+?])`,
    String.raw`(?:[*+]|\{\d+,\})\??\)(?:[*+]|\{\d+,\})`,
  ].join(''),
  'u',
)

const isText = (type: FieldType): boolean => type === 'string' || type === 'text'

/** What is wrong with a field of the right shape. `tables` are the names in its namespace. */
export function checkField(field: WrittenField, path: Path, tables: ReadonlySet<string>): ConfigIssue[] {
  const issues: ConfigIssue[] = []
  const report = (option: string, message: string): void => void issues.push({ path: [...path, option], message })

  const known = optionsOf[field.type]
  const misplaced = allOptions.filter(
    (name) => !known.includes(name) && field[name] !== undefined && field[name] !== false,
  )
  for (const name of misplaced) report(name, `is not for fields of type ${field.type}`)
  if (field.computed) {
    if (field.type === 'json' || field.type === 'geo') report('computed', `is not for fields of type ${field.type}`)
    for (const name of writtenOptions)
      if (field[name] !== undefined && field[name] !== false) report(name, 'is not for computed fields')
    return issues
  }
  if (misplaced.length > 0) return issues

  const { min, max, pattern, references } = field
  if (isText(field.type))
    for (const [name, value] of Object.entries({ min, max }))
      if (value !== undefined && !(Number.isInteger(value) && value >= 0))
        report(name, 'must be a number of characters, an integer of 0 or more')
  if (min !== undefined && max !== undefined && min > max) report('min', `is greater than max (${max})`)
  if (pattern !== undefined) {
    if (!compile(pattern)) report('pattern', 'is not a regular expression (with the flag u)')
    else if (repeatedRepetition.test(pattern))
      report('pattern', 'repeats a repetition, such as (a+)+: a short text could keep the server busy for hours')
  }
  if (references !== undefined && !tables.has(references))
    report('references', `there is no table "${references}" in this namespace`)
  checkEnum(field, report)
  if (issues.length === 0 && field.default !== undefined) {
    const { mistake } = readDefault(field)
    if (mistake !== null) report('default', mistake)
  }
  return issues
}

function checkEnum(field: WrittenField, report: (option: string, message: string) => void): void {
  if (field.enum === undefined) return
  const expected = field.type === 'number' ? 'number' : 'string'
  if (field.enum.some((value) => typeof value !== expected))
    report('enum', `must hold ${isText(field.type) ? 'texts' : 'numbers'} only`)
  if (new Set(field.enum).size < field.enum.length) report('enum', 'holds a value twice')
}

/** The field of a declaration in which `checkField` found nothing. */
export function createField(name: string, declared: WrittenField): Field {
  const { type, required, unique, min, max, pattern, references, index } = declared
  return Object.freeze({
    name,
    type,
    required,
    unique,
    ...(declared.default === undefined ? {} : { default: readDefault(declared).value }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(pattern === undefined ? {} : { pattern: new RegExp(pattern, 'u') }),
    ...(declared.enum === undefined ? {} : { enum: Object.freeze([...declared.enum]) }),
    ...(references === undefined ? {} : { references }),
    ...(index ? { index } : {}),
    ...(declared.computed ? { readOnly: true as const } : {}),
  })
}

function compile(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    return null
  }
}

/** The default as it is stored, or what is wrong with it. */
function readDefault(field: WrittenField): { value?: unknown; mistake: string | null } {
  const { type } = field
  const value = field.default
  if (type === 'geo') {
    const location = findLocation(value)
    return location ? accept(Object.freeze(location)) : refuse(`must be ${locationShape}`)
  }
  if (type === 'json') return readJsonDefault(value)
  if (type === 'boolean') return typeof value === 'boolean' ? accept(value) : refuse('must be true or false')
  if (type === 'datetime') {
    const normal = typeof value === 'string' ? findDatetime(value) : null
    return normal === null ? refuse('must be a timestamp such as "2026-01-31T12:00:00Z"') : accept(normal)
  }
  if (type === 'number') {
    if (typeof value !== 'number' || !Number.isFinite(value)) return refuse('must be a number')
    return findRangeMistake(field, value, value) ?? accept(value)
  }
  if (typeof value !== 'string' || !isStorableText(value)) return refuse('must be text')
  const beyond = findRangeMistake(field, value, codePointLength(value))
  if (beyond) return beyond
  if (field.pattern !== undefined && !compile(field.pattern)?.test(value)) return refuse('does not match the pattern')
  return accept(value)
}

const accept = (value: unknown) => ({ value, mistake: null })
const refuse = (mistake: string) => ({ mistake })

function findRangeMistake({ min, max, enum: values }: WrittenField, value: string | number, size: number) {
  const unit = typeof value === 'string' ? ' characters' : ''
  if (min !== undefined && size < min) return refuse(`is below min (${min}${unit})`)
  if (max !== undefined && size > max) return refuse(`is above max (${max}${unit})`)
  return values && !values.includes(value) ? refuse('is not one of the enum') : null
}

/** A frozen copy of what JSON makes of the value, provided that JSON makes the same of it. */
function readJsonDefault(value: unknown): { value?: unknown; mistake: string | null } {
  const mistake = 'must be JSON: null, booleans, finite numbers, text, lists and plain objects'
  if (!isJson(value, 1)) return refuse(mistake)
  return accept(deepFreeze(structuredClone(value)))
}

function isJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === 'boolean') return true
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth > jsonDepthMax) return false
  if (Array.isArray(value)) return value.every((item) => isJson(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((item) => isJson(item, depth + 1))
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}
