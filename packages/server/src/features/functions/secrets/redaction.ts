/** Removes the values of secrets from texts that operators read: log lines and the errors of functions. */
import { secretRedactedCharsMin } from '../../../limits/functions.ts'

/** Replaces every value by the name of its secret; a value that contains another one is replaced first. */
export function redact(text: string, secrets: Readonly<Record<string, string>>): string {
  const values = Object.entries(secrets).filter(([, value]) => value.length >= secretRedactedCharsMin)
  values.sort(([, one], [, other]) => other.length - one.length)
  return values.reduce((result, [name, value]) => result.replaceAll(value, `[secret ${name}]`), text)
}

/** The same for every text in a JSON value, names of members included. */
export function redactValue<Value>(value: Value, secrets: Readonly<Record<string, string>>): Value {
  const redacted = (one: unknown): unknown => {
    if (typeof one === 'string') return redact(one, secrets)
    if (Array.isArray(one)) return one.map(redacted)
    if (typeof one !== 'object' || one === null) return one
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [redact(name, secrets), redacted(member)]))
  }
  return redacted(value) as Value
}
