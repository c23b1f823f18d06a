/**
 * The body of a traced request as administrators see it. Of records the values are shown, without those of secret names
 * and of hidden fields; of all other endpoints only the form, since their bodies are personal.
 */
import { traceBodyBytesMax, traceBodyCharsMax } from '../../../limits/dashboard.ts'
import { masked } from '../masked.ts'

/** Members and nesting of a form. */
const formMembersMax = 50
const formDepthMax = 4

/** The type of each value in place of it. */
function formOf(value: unknown, depth = 0): unknown {
  if (value === null || depth > formDepthMax) return '…'
  if (Array.isArray(value)) return value.length === 0 ? [] : [formOf(value[0], depth + 1), `… ${value.length} in all`]
  if (typeof value !== 'object') return typeof value
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, formMembersMax)
      .map(([name, member]) => [name, formOf(member, depth + 1)]),
  )
}

/** The text, or null without a body and for one that is too large. `isHidden`: of fields that users never receive. */
export function shownBody(
  endpoint: string,
  body: unknown,
  bytes: number | null,
  isHidden: (name: string) => boolean,
): string | null {
  if (body === undefined || bytes === null || bytes > traceBodyBytesMax) return null
  const text = JSON.stringify(endpoint.startsWith('records.') ? masked(body, isHidden) : formOf(body)) ?? ''
  return text.length > traceBodyCharsMax ? `${text.slice(0, traceBodyCharsMax).toWellFormed()}…` : text
}
