/** Callers for unit tests. */
import { type UserCaller, userCallerOf } from './caller.ts'

/** A signed-in user without roles or claims, whose token does not expire. */
export const userCaller = (id: string): UserCaller =>
  userCallerOf({
    id,
    email: null,
    emailVerified: false,
    displayName: null,
    role: 'user',
    isAnonymous: false,
    custom: {},
  })
