/** Describes a declared function as JSON, for the server to validate. */
import type { Exported } from '../config/sections/functions/exported.ts'
import { isStandardSchema } from '../config/sections/functions/standard-schema.ts'
import type { ManifestEntry } from '../engines/hosts/hosts.ts'
import { functionSchemaCharsMax } from '../limits/functions.ts'

/** Functions become `true`; what JSON cannot express is absent. */
const asJson = (value: unknown): unknown => {
  if (typeof value === 'function') return true
  const text = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}

export function describe(name: string, declared: Exported): ManifestEntry {
  const { kind, location, ...rest } = declared
  const { run: _, types: _types, input, ...options } = rest as Record<string, unknown>
  return {
    name,
    kind,
    location,
    ...(kind === 'rpc' && isGenerator(declared.run) ? { streams: true } : {}),
    ...Object.fromEntries(
      Object.entries(options)
        .map(([option, value]) => [option, asJson(value)] as const)
        .filter(([, value]) => value !== undefined),
    ),
    ...describeInput(input),
  }
}

/** Whether a function is declared as a generator. One that returns a generator of another function is not known. */
const isGenerator = (run: unknown): boolean => /GeneratorFunction$/.test((run as object).constructor.name)

/** `input` is a JSON Schema where the library can express it, otherwise true. */
function describeInput(input: unknown): { readonly input?: unknown } {
  if (input === undefined) return {}
  if (!isStandardSchema(input)) return { input: false }
  try {
    const schema = input['~standard'].jsonSchema?.input({ target: 'draft-2020-12' })
    return { input: schema && JSON.stringify(schema).length <= functionSchemaCharsMax ? schema : true }
  } catch {
    return { input: true }
  }
}
