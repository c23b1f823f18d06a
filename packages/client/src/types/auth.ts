/** Users, sessions and the ways to sign in. */

export interface User {
  id: string
  email: string | null
  displayName: string | null
  avatarUrl: string | null
  role: string
  isAnonymous: boolean
  emailVerified: boolean
}

/**
 * `expiresAt`: milliseconds since 1970. The session ends only on a refusal with slug `invalid-token`, `token-expired`,
 * `session-ended` or `account-disabled`.
 */
export interface Session {
  user: User
  accessToken: string
  expiresAt: number
}

/** With a second factor, `verifyMfa` completes the sign-in. */
export type SignInResult = { session: Session } | { mfa: { ticket: string; factors: string[] } }

export interface ProfilePatch {
  displayName?: string | null
  avatarUrl?: string | null
  metadata?: object
}

export interface Auth {
  readonly session: Session | null
  readonly user: User | null
  /** Settled once the stored session has been read. */
  readonly ready: Promise<Session | null>
  onChange(listener: (session: Session | null) => void): () => void
  signUp(input: { email: string; password: string; displayName?: string }): Promise<Session>
  signIn(input: { email: string; password: string }): Promise<SignInResult>
  signInAnonymously(): Promise<Session>
  requestMagicLink(email: string): Promise<void>
  completeMagicLink(token: string): Promise<SignInResult>
  requestEmailCode(email: string): Promise<void>
  completeEmailCode(email: string, code: string): Promise<SignInResult>
  /** Without `popup` the page is left, and `completeRedirect` completes the sign-in. */
  signInWithProvider(provider: string, options?: { redirectUrl?: string; popup?: boolean }): Promise<Session | never>
  completeRedirect(): Promise<Session | null>
  signInWithPasskey(): Promise<SignInResult>
  verifyMfa(ticket: string, code: string): Promise<Session>
  recoverMfa(ticket: string, recoveryCode: string): Promise<Session>
  refresh(): Promise<Session | null>
  signOut(): Promise<void>
  updateProfile(patch: ProfilePatch): Promise<User>
  changePassword(input: { currentPassword: string; newPassword: string }): Promise<void>
  changeEmail(input: { email: string; password?: string }): Promise<void>
  verifyEmailChange(token: string): Promise<void>
  requestPasswordReset(email: string): Promise<void>
  resetPassword(token: string, newPassword: string): Promise<void>
  requestEmailVerification(): Promise<void>
  verifyEmail(token: string): Promise<void>
  readonly sessions: AuthSessions
  readonly mfa: AuthMfa
  readonly passkeys: AuthPasskeys
  readonly identities: AuthIdentities
}

export interface AuthSessions {
  list(): Promise<object[]>
  end(id: string): Promise<void>
}

export interface TotpEnrollment {
  factorId: string
  secret: string
  qrCodeUri: string
  recoveryCodes: string[]
}

export interface AuthMfa {
  enrollTotp(): Promise<TotpEnrollment>
  confirmTotp(factorId: string, code: string): Promise<void>
  removeTotp(code: string): Promise<void>
  list(): Promise<object[]>
}

export interface AuthPasskeys {
  add(name?: string): Promise<object>
  list(): Promise<object[]>
  remove(id: string): Promise<void>
}

export interface AuthIdentities {
  list(): Promise<object[]>
  link(provider: string): Promise<object>
  unlink(id: string): Promise<void>
}
