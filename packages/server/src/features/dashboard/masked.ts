/** Values as administrators may see them: without what is secret by its name, and bounded. */
import { auditChangesMax, auditDepthMax, auditValueCharsMax } from '../../limits/dashboard.ts'

const mask = '[masked]'
const secretWords = [
  'passwords?',
  'passphrases?',
  'secrets?',
  'tokens?',
  'authorization',
  'cookies?',
  'credentials?',
  'otp',
  '(?:private|api|service|signing) keys?',
  'recovery codes?',
]
const secretName = new RegExp(`\\b(?:${secretWords.join('|')})\\b`)

/** Whether a member has a secret by its name, such as `apiToken`, `API_TOKEN` or `new-password`. */
function isSecret(name: string): boolean {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/[^A-Za-z\d]+/g, ' ')
  return secretName.test(words.toLowerCase())
}

/**
 * A copy in which values of secret names are masked, and those for which `isHidden` is true; long texts are cut, and
 * nothing is nested too deeply.
 */
export function masked(value: unknown, isHidden: (name: string) => boolean = () => false, depth = 1): unknown {
  if (typeof value === 'string')
    return value.length > auditValueCharsMax ? `${value.slice(0, auditValueCharsMax).toWellFormed()}…` : value
  if (typeof value !== 'object' || value === null) return value
  if (depth > auditDepthMax) return '…'
  // One more item may say how many changes are left out.
  if (Array.isArray(value)) return value.slice(0, auditChangesMax + 1).map((item) => masked(item, isHidden, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      (isSecret(name) || isHidden(name)) && member !== null ? mask : masked(member, isHidden, depth + 1),
    ]),
  )
}
