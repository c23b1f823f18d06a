/**
 * Schemas that are built when they are first used. The endpoints declare thousands, most of them for OpenAPI alone, and
 * building all took a tenth of the start's processor time and 7 MB (decision 140).
 *
 * A lazy schema records the call that makes it (`z.object({ … })`, `.optional()`) and repeats it on the library when
 * anything but a further schema is read from it.
 */
import type { z } from 'zod'

/** Key of the library's schema that a lazy one stands for. */
const built = Symbol('built schema')

/** Methods that derive a schema from another. Those that are missing here only build their schema earlier. */
const derivations = new Set<PropertyKey>([
  'array',
  'catch',
  'default',
  'describe',
  'extend',
  'int',
  'length',
  'max',
  'meta',
  'min',
  'nonnegative',
  'nullable',
  'nullish',
  'optional',
  'partial',
  'pick',
  'pipe',
  'positive',
  'prefault',
  'refine',
  'regex',
  'strict',
  'superRefine',
  'toLowerCase',
  'transform',
  'trim',
])

type Make = (...args: unknown[]) => unknown

/** The library's schema, for code that uses it often: every property of a lazy one costs a look-up. */
export const builtSchema = <Schema extends z.ZodType>(schema: Schema): Schema =>
  (schema as Schema & { readonly [built]?: Schema })[built] ?? schema

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const builtValue = (value: unknown): unknown => (isObject(value) ? builtSchema(value as z.ZodType) : value)

/** An argument with the schemas in it built: schemas are arguments, in lists, or in shapes. */
function builtArgument(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(builtValue)
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return builtValue(value)
  const schema = builtValue(value)
  if (schema !== value) return schema
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, builtValue(part)]))
}

/** How a schema is made: the arguments of a function of the library, or of a method of another schema. */
interface Recorded {
  readonly from: Make | Recorded
  readonly method: PropertyKey | null
  readonly args: readonly unknown[]
  schema: object | null
}

function build(recorded: Recorded): object {
  if (recorded.schema === null) {
    const { from, method, args } = recorded
    const owner = typeof from === 'function' ? null : build(from)
    const make = owner === null ? (from as Make) : (Reflect.get(owner, method as PropertyKey) as Make)
    recorded.schema = make.apply(owner, args.map(builtArgument)) as object
  }
  return recorded.schema
}

const handler: ProxyHandler<Recorded> = {
  get(recorded, key) {
    if (key === built) return build(recorded)
    if (!derivations.has(key)) return Reflect.get(build(recorded), key)
    return (...args: unknown[]) =>
      // `meta()` reads.
      args.length === 0 && key === 'meta'
        ? (build(recorded) as z.ZodType).meta()
        : lazySchema({ from: recorded, method: key, args, schema: null })
  },
}

/** One handler for all: closures of each schema would be half of what the schemas cost. */
const lazySchema = (recorded: Recorded): object => new Proxy(recorded, handler)

/** The function of the library that makes a schema, as one that makes a lazy schema. */
export const lazily = <Create>(create: Create): Create =>
  ((...args: unknown[]) => lazySchema({ from: create as Make, method: null, args, schema: null })) as Create
