/** Secrets by name: functions declare which they use, and the server supplies the values. */
import { callerLocation, type SourceLocation } from './location.ts'
import { isSecretName } from './secret-name.ts'

/** A reference to a secret; the value is never in the code. */
export interface Secret {
  readonly secret: string
}

export interface DeclaredSecret {
  readonly name: string
  readonly location: SourceLocation | null
}

/** In the order of declaration. */
export const declaredSecrets: DeclaredSecret[] = []

/** Declares a secret at module level; its value is `ctx.secrets[name]`. The server names a missing one at start. */
export function secret(name: string): Secret {
  if (!isSecretName(name))
    throw new TypeError(`"${name}" is not the name of a secret: use letters, digits and underscores, such as CRM_KEY`)
  declaredSecrets.push({ name, location: callerLocation() })
  return Object.freeze({ secret: name })
}
