/** Checks of a call against its declaration: its caller, its input and its result. */
import type { RpcFunction } from '../config/sections/functions/exported.ts'
import { HttpError } from '../config/sections/functions/http-error.ts'
import type { StandardIssue, StandardSchema } from '../config/sections/functions/standard-schema.ts'
import type { InvocationContext } from '../engines/hosts/hosts.ts'

/** Throws 401 or 403. The server has checked callers that are not functions. */
export function checkCaller({ caller }: RpcFunction, { callerKind, auth }: InvocationContext): void {
  if (typeof caller !== 'function' || callerKind === 'service') return
  if (auth === null) throw new HttpError(401, 'authentication-required', 'Authentication required')
  if (!caller(auth)) throw new HttpError(403, 'access-denied', 'Access denied')
}

/** The path of a field, such as `items[0].price`; `whole` for the value itself. */
function fieldOf(path: StandardIssue['path'], whole: 'input' | 'output'): string {
  let text = ''
  for (const part of path ?? []) {
    const key = typeof part === 'object' ? part.key : part
    if (typeof key === 'number') text += `[${key}]`
    else text += text === '' ? String(key) : `.${String(key)}`
  }
  return text === '' ? whole : text
}

const issuesMax = 100

/** The input as the schema returns it. Throws 400 with the first error of each field. */
export async function parseInput(schema: StandardSchema | undefined, input: unknown): Promise<unknown> {
  if (!schema) return input
  const result = await schema['~standard'].validate(input)
  if (!result.issues) return result.value
  const data: Record<string, { code: string; message: string }> = {}
  for (const { path, message } of result.issues.slice(0, issuesMax))
    data[fieldOf(path, 'input')] ??= { code: 'type', message }
  const [field = 'input', first] = Object.entries(data)[0] ?? []
  throw new HttpError(400, 'invalid-input', `${field}: ${first?.message ?? 'is invalid'}`, data)
}

/** A result, or a value that is yielded, as the schema returns it. Throws where the function has broken its promise. */
export async function checkOutput(schema: StandardSchema, value: unknown): Promise<unknown> {
  const result = await schema['~standard'].validate(value)
  if (!result.issues) return result.value
  const [first] = result.issues
  throw new Error(`The result does not fit the schema: ${fieldOf(first?.path, 'output')}: ${first?.message}`)
}
