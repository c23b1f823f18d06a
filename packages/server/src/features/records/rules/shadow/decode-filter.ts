/** Filters of a rule that has run in another process, from their JSON. */
import { and, exists, field, not, or, where } from '../../../../access/filter.ts'
import { isJsonObject } from '../../../../base/text/json.ts'

function decodeValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decodeValue)
  if (!isJsonObject(value)) return value
  if (value.$undefined === true) return undefined
  return typeof value.$field === 'string' ? field(value.$field) : value
}

const partsOf = (of: unknown): object[] => (Array.isArray(of) ? of : []).map((one) => decodeFilter(one) as object)

/** What the rule returned: a boolean, or a filter. What is neither stays as it is, and fails when it is compiled. */
export function decodeFilter(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  switch (value.$filter) {
    case 'and':
      return and(...partsOf(value.of))
    case 'or':
      return or(...partsOf(value.of))
    case 'not':
      return not(decodeFilter(value.of) as object)
    case 'exists':
      return exists(String(value.table), decodeFilter(value.where) as object)
    case 'where':
      return where(String(value.field), value.op as '==', decodeValue(value.value) as string)
    default:
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, decodeValue(member)]))
  }
}
