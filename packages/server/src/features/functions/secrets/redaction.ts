/** Removes the values of secrets from texts that operators read: log lines and the errors of functions. */
import { secretRedactedCharsMin } from '../../../limits/function-secrets.ts'

/** Replaces every value by the name of its secret; a value that contains another one is replaced first. */
export function redact(text: string, secrets: Readonly<Record<string, string>>): string {
  const values = Object.entries(secrets).filter(([, value]) => value.length >= secretRedactedCharsMin)
  values.sort(([, one], [, other]) => other.length - one.length)
  return values.reduce((result, [name, value]) => result.replaceAll(value, `[secret ${name}]`), text)
}

/** The same for every text in a JSON value, names of members included. */
export function redactValue(value: unknown, secrets: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return redact(value, secrets)
  if (Array.isArray(value)) return value.map((one) => redactValue(one, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [redact(name, secrets), redactValue(member, secrets)]),
  )
}
