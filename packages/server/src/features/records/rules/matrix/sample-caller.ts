/**
 * A user that stands for every user: its properties are marks, which show in the trees that rules return where a record
 * is compared with the caller. Also notes what a rule reads of the caller.
 */
import { type Auth, type UserCaller, userCallerOf } from '../../../../access/caller.ts'

/** A mark is the name of a property in these brackets, which no stored text is expected to have. */
const markOf = (name: string): string => `⟦${name}⟧`

export const idMark = markOf('auth.id')
/** Compared with a verified address, a record belongs to the caller as with the id. */
const emailMark = markOf('auth.email')
const claimPrefix = 'auth.custom.'
export const claimMark = (name: string): string => markOf(claimPrefix + name)
export const instanceMark = markOf('instance')

/** Whether the value says who the caller is. */
export const isIdentityMark = (value: string): boolean => value === idMark || value === emailMark

/** Whether the value is a mark of a claim. */
export const isClaimMark = (value: string): boolean => value.startsWith(`⟦${claimPrefix}`)

/** The text of a tree with marks as the expressions that they stand for. */
export const withoutMarks = (text: string): string => text.replaceAll(/"⟦([^⟧"]*)⟧"/g, '$1')

export interface SampleCaller {
  readonly caller: UserCaller
  /** The properties beside the id that rules have read: `role`, `custom.team`. */
  readonly reads: ReadonlySet<string>
  /** The names of the claims that rules have read. */
  readonly claims: ReadonlySet<string>
}

/** The value of a claim; undefined for a user without it. */
export type ClaimValue = (name: string) => unknown

/** A user of the role `user` with a verified address, and with claims of these values. */
export function createSampleCaller(claimOf: ClaimValue): SampleCaller {
  const reads = new Set<string>()
  const claims = new Set<string>()
  const readClaim = (name: string | symbol): unknown => {
    if (typeof name !== 'string') return undefined
    claims.add(name)
    reads.add(`custom.${name}`)
    return claimOf(name)
  }
  const custom = new Proxy(Object.create(null), {
    get: (_, name) => readClaim(name),
    has: (_, name) => readClaim(name) !== undefined,
  })
  const auth: Auth = {
    id: idMark,
    email: emailMark,
    emailVerified: true,
    displayName: markOf('auth.displayName'),
    role: 'user',
    isAnonymous: false,
    custom,
  }
  const observed = new Proxy(auth, {
    get(target, name) {
      if (typeof name === 'string' && name !== 'id' && name !== 'custom') reads.add(name)
      return Reflect.get(target, name)
    },
  })
  return { caller: userCallerOf(observed), reads, claims }
}
