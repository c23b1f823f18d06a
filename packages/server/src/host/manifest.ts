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
  const { run: _, types: _types, input, output, ...options } = rest as Record<string, unknown>
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
    ...describeSchema('input', input),
    ...describeSchema('output', output),
  }
}

/** Whether a function is declared as a generator. One that returns a generator of another function is not known. */
const isGenerator = (run: unknown): boolean => /GeneratorFunction$/.test((run as object).constructor.name)

/** A JSON Schema where the library can express it, otherwise true; false for what is no schema. */
function describeSchema(side: 'input' | 'output', declared: unknown): Readonly<Record<string, unknown>> {
  if (declared === undefined) return {}
  if (!isStandardSchema(declared)) return { [side]: false }
  try {
    const schema = declared['~standard'].jsonSchema?.[side]?.({ target: 'draft-2020-12' })
    return { [side]: schema && JSON.stringify(schema).length <= functionSchemaCharsMax ? schema : true }
  } catch {
    return { [side]: true }
  }
}
