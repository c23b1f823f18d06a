/** Types of the section `dashboard` as users write it. `dashboard.ts` validates it at start. */

export interface DashboardOptions {
  /**
   * Roles besides `owner`, `editor`, `support` and `viewer`: a list of scopes as of service keys, such as
   * `{ moderator: ['db:table:posts:*', 'auth:admin:*:read'] }`.
   */
  readonly roles?: { readonly [name: string]: readonly string[] }
  /** Whether signing in needs a passkey or a second factor. Default true, false in development mode. */
  readonly requireMfa?: boolean
}
