/** Writes the type of a JSON Schema. What it does not express in TypeScript is wider: `unknown`. */
import { isJsonObject } from '../base/text/json.ts'

type Schema = Readonly<Record<string, unknown>>

/** Deeper parts are `unknown`, as are references, which may be recursive. */
const depthMax = 20

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const literal = (value: unknown): string =>
  typeof value === 'object' && value !== null ? 'unknown' : JSON.stringify(value)
const union = (types: readonly string[]): string => [...new Set(types)].map((type) => `(${type})`).join(' | ')

/** In one line. */
export function typeOfSchema(schema: unknown, depth = 0): string {
  if (schema === false) return 'never'
  if (!isJsonObject(schema) || depth > depthMax) return 'unknown'
  const { const: value, enum: values, type, anyOf, oneOf } = schema
  if (value !== undefined) return literal(value)
  if (Array.isArray(values)) return union(values.map(literal))
  const options = listOf(anyOf ?? oneOf)
  if (options.length > 0) return union(options.map((one) => typeOfSchema(one, depth + 1)))
  if (Array.isArray(type)) return union(type.map((one) => typeOfSchema({ ...schema, type: one }, depth + 1)))
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type
    case 'number':
    case 'integer':
      return 'number'
    case 'array':
      return typeOfArray(schema, depth)
    case 'object':
      return typeOfObject(schema, depth)
    default:
      return 'unknown'
  }
}

function typeOfArray({ items, prefixItems }: Schema, depth: number): string {
  const first = listOf(prefixItems).map((one) => typeOfSchema(one, depth + 1))
  if (first.length === 0) return `readonly (${typeOfSchema(items, depth + 1)})[]`
  const rest = items === undefined || items === false ? [] : [`...(${typeOfSchema(items, depth + 1)})[]`]
  return `readonly [${[...first, ...rest].join(', ')}]`
}

function typeOfObject({ properties, required, additionalProperties: others }: Schema, depth: number): string {
  const needed = new Set(listOf(required))
  const members = Object.entries(isJsonObject(properties) ? properties : {}).map(
    ([name, one]) => `readonly ${JSON.stringify(name)}${needed.has(name) ? '' : '?'}: ${typeOfSchema(one, depth + 1)}`,
  )
  if (members.length > 0) return `{ ${members.join('; ')} }`
  return `{ readonly [name: string]: ${isJsonObject(others) ? typeOfSchema(others, depth + 1) : 'unknown'} }`
}
