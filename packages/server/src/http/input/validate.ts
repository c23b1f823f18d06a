/** Validates input against an endpoint's schema and translates the library's issues into field errors of the API. */
import { z } from 'zod'
import { builtSchema } from '../../base/schemas/lazy-schema.ts'
import { suggest } from '../../config/issues.ts'
import { badRequest, type FieldError, type FieldErrorCode, invalid } from '../../errors.ts'
import { fieldErrorsMax } from '../../limits/api.ts'
import { parseQueryString } from './query-string.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** The parsed input. Throws 400 that names every invalid field, or none if the input itself has the wrong type. */
export function validate<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const found = new Map<string, FieldError>()
  for (const issue of result.error.issues) collect(issue, [], input, found)
  if (found.size === 0) throw badRequest(result.error.issues[0]?.message ?? 'Invalid input')
  throw invalid(Object.fromEntries(found))
}

/**
 * Creates a reader of query strings for an object schema. It throws as `validate` does, and 400 that names undeclared
 * parameters unless `allowsUnknown`. The result for no query string, the common case, is computed once.
 */
export function createQueryReader<T>(schema: z.ZodType<T>, allowsUnknown = false): (queryString: string) => T {
  const read = createParameterReader(schema, allowsUnknown)
  let blank: { readonly query: T } | null = null
  return (queryString) => {
    if (queryString !== '') return read(parseQueryString(queryString))
    blank ??= { query: Object.freeze(read(parseQueryString(''))) }
    return blank.query
  }
}

/** The same for parameters that do not come from a URL. */
export function createParameterReader<T>(
  declared: z.ZodType<T>,
  allowsUnknown = false,
): (parameters: Readonly<Record<string, string>>) => T {
  const schema = builtSchema(declared)
  if (allowsUnknown) return (parameters) => validate(schema, parameters)
  const shape = shapeOf(schema)
  const known = new Set(Object.keys(shape))
  const { checks = [] } = schema.def as { readonly checks?: readonly unknown[] }
  const without = checks.length > 0 ? null : schema.safeParse({})
  return (parameters) => {
    checkKnown(parameters, known)
    return (without?.success ? parseGiven(shape, parameters, without.data) : null) ?? validate(schema, parameters)
  }
}

function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  if (!(schema instanceof z.ZodObject)) throw new Error('The query of an endpoint must be an object schema')
  return schema.shape as Readonly<Record<string, z.ZodType>>
}

/**
 * Parses the few parameters that are given, each by its own schema, where the object has no checks of its own. Null if
 * one is invalid. `without` is the result without parameters.
 */
function parseGiven<T>(
  shape: Readonly<Record<string, z.ZodType>>,
  parameters: Readonly<Record<string, string>>,
  without: T,
): T | null {
  const parsed = { ...without } as Record<string, unknown>
  for (const name in parameters) {
    const result = (shape[name] as z.ZodType).safeParse(parameters[name])
    if (!result.success) return null
    parsed[name] = result.data
  }
  return parsed as T
}

/** Names that other APIs use for a parameter, for suggestions beyond typing errors. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  sort: ['order', 'orderby', 'order_by', 'sortby', 'sort_by', 'ordering'],
  filter: ['where', 'conditions'],
  fields: ['select', 'columns', 'projection', 'only'],
  perPage: ['pagesize', 'page_size', 'per_page', 'size', 'count', 'take'],
  offset: ['skip', 'start', 'from'],
  after: ['cursor', 'starting_after', 'startafter', 'next'],
  before: ['ending_before', 'endbefore', 'previous'],
  cursor: ['after', 'next', 'pagetoken', 'page_token'],
  q: ['query', 'search', 'term', 'text'],
}

/** Throws 400 that names unknown parameters; the size of the response is bounded. */
function checkKnown(parameters: Readonly<Record<string, string>>, known: ReadonlySet<string>): void {
  const unknown = Object.keys(parameters).filter((name) => !known.has(name))
  if (unknown.length === 0) return
  throw invalid(
    Object.fromEntries(
      unknown.slice(0, fieldErrorsMax).map((name) => [
        // Escaping makes a name longer, but the URL's bound limits it.
        name,
        { code: 'unknown' as const, message: `is not a parameter of this endpoint.${suggestParameter(name, known)}` },
      ]),
    ),
  )
}

function suggestParameter(name: string, known: ReadonlySet<string>): string {
  const lower = name.toLowerCase()
  const meant = [...known].find((one) => synonyms[one]?.includes(lower))
  if (meant !== undefined) return ` Did you mean "${meant}"?`
  const suggestion = suggest(name, known)
  if (suggestion !== '') return suggestion
  return known.size === 0 ? ' It takes none.' : ` It takes ${[...known].join(', ')}.`
}

/** Reports the first issue of each field; the size of the response is bounded. */
function collect(issue: Issue, base: Path, input: unknown, found: Map<string, FieldError>): void {
  const path = [...base, ...issue.path]
  const add = (at: Path, code: FieldErrorCode, message: string): void => {
    const name = fieldName(at)
    if (name !== '' && !found.has(name) && found.size < fieldErrorsMax) found.set(name, { code, message })
  }
  switch (issue.code) {
    case 'unrecognized_keys':
      for (const key of issue.keys) add([...path, key], 'unknown', 'is not known')
      return
    case 'invalid_type':
      if (valueAt(input, path) === undefined) add(path, 'required', 'is required')
      else add(path, 'type', `must be ${typeNames[issue.expected] ?? issue.expected}`)
      return
    case 'too_small':
      add(
        path,
        'min',
        `must ${bound(issue.origin, issue.minimum, issue.inclusive === false ? 'more than' : 'at least')}`,
      )
      return
    case 'too_big':
      add(
        path,
        'max',
        `must ${bound(issue.origin, issue.maximum, issue.inclusive === false ? 'less than' : 'at most')}`,
      )
      return
    case 'invalid_value':
      if (valueAt(input, path) === undefined) add(path, 'required', 'is required')
      else
        add(path, 'enum', `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`)
      return
    case 'invalid_format':
      add(path, 'pattern', formatNames[issue.format] ?? `must be a valid ${issue.format}`)
      return
    case 'invalid_union': {
      if ('options' in issue && issue.options) {
        // The discriminator matches no option of the union.
        if (valueAt(input, path) === undefined) add(path, 'required', 'is required')
        else add(path, 'enum', `must be one of ${issue.options.map(String).join(', ')}`)
        return
      }
      // If a single option is meant, its issues are more helpful than "matches no option".
      const meant = issue.errors.filter((issues) => issues.some((inner) => inner.path.length > 0))
      const only = meant.length === 1 ? meant[0] : undefined
      if (only) for (const inner of only) collect(inner, path, input, found)
      else if (valueAt(input, path) === undefined) add(path, 'required', 'is required')
      else add(path, 'type', 'has none of the forms allowed here')
      return
    }
    case 'custom':
      add(path, customCode(issue.params?.code), issue.message)
      return
    default:
      add(path, 'type', issue.message)
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

const formatNames: Readonly<Record<string, string>> = {
  regex: 'does not have the required form',
  datetime: 'must be an ISO 8601 timestamp',
  email: 'must be an email address',
  url: 'must be a URL',
}

function bound(origin: string, limit: number | bigint, relation: string): string {
  if (origin === 'string') return `have ${relation} ${limit} characters`
  if (origin === 'array' || origin === 'set') return `have ${relation} ${limit} items`
  if (origin === 'object' || origin === 'map') return `have ${relation} ${limit} fields`
  return `be ${relation} ${limit}`
}

const customCodes = new Set<unknown>([
  'required',
  'type',
  'min',
  'max',
  'pattern',
  'enum',
  'unique',
  'unknown',
  'reference',
  'operator',
] satisfies FieldErrorCode[])

const customCode = (code: unknown): FieldErrorCode => (customCodes.has(code) ? (code as FieldErrorCode) : 'type')

/** `updates[3].id`. */
function fieldName(path: Path): string {
  let name = ''
  for (const step of path) {
    if (typeof step === 'number') name += `[${step}]`
    else name += name === '' ? String(step) : `.${String(step)}`
  }
  return name
}

function valueAt(input: unknown, path: Path): unknown {
  let value = input
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Object.hasOwn(value, step) ? (value as Record<PropertyKey, unknown>)[step] : undefined
  }
  return value
}
