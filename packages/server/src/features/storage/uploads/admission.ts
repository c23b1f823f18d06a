/**
 * Authenticates requests to a bucket, by credentials or by a signed URL. A signed URL acts for its issuer, who must
 * still be active. An invalid token is rejected even where the rules would allow the request without it.
 */
import { callerKey, type UserCaller } from '../../../access/caller.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { authenticationRequired, invalidToken } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { type BucketCall, type Buckets, type RequestOrigin, scopeOf } from '../buckets.ts'
import type { Store } from '../migrations.ts'
import { callerOf, type DownloadTicket, type Tokens, type UploadTicket } from './tokens.ts'

/** Query parameters of a signed URL; undefined if not sent. */
export interface SignedQuery {
  readonly token?: string | undefined
  readonly key?: string | undefined
}

type BucketRequest<Query> = Pick<Call<Query>, 'params' | 'caller' | 'query'> & RequestOrigin

export interface DownloadAuthorization {
  readonly call: BucketCall
  readonly token: DownloadTicket | null
}

export interface UploadAuthorization {
  readonly call: BucketCall
  readonly ticket: UploadTicket | null
  /** Identifies the owner of an upload session; only the same owner can continue it. */
  readonly owner: string
  /** The user recorded as uploader; null for a service key. */
  readonly uploader: string | null
  /** Largest file in bytes, by the bucket and the ticket. */
  readonly bytesMax: number
}

export interface Admission {
  /** Throws 404 for an unknown bucket, 401 for a bad token or one for another object. */
  authorizeDownload(
    call: BucketRequest<{ readonly token?: string | undefined }>,
    key: string,
  ): Promise<DownloadAuthorization>
  /** Throws as `authorizeDownload`, and 401 for an anonymous caller without a token. */
  authorizeUpload(call: BucketRequest<SignedQuery>): Promise<UploadAuthorization>
  /**
   * Checks the user again after the body has been received, which may take hours. Throws 401 if the user was disabled
   * or signed out meanwhile; an access token that expired meanwhile is accepted.
   */
  checkActive(authorization: UploadAuthorization): Promise<void>
  /** Throws 401 for a used ticket. An early check, which saves clients a futile upload. */
  checkTicket(ticket: UploadTicket | null): Promise<void>
  /** Redeems the ticket. Throws 401 if it was used before. */
  redeemTicket(tx: Transaction, ticket: UploadTicket | null): Promise<void>
  /** Makes a ticket that this request has redeemed valid again. */
  restoreTicket(tx: Transaction, ticket: UploadTicket | null): Promise<void>
}

export interface AdmissionDeps {
  readonly store: Store
  readonly buckets: Buckets
  readonly tokens: Tokens
  /** The user with the current role and claims; null for a disabled or deleted user. */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /** The user with the current role and claims. Rejects with 401 after the session has ended. */
  readonly refreshClaims: (user: UserCaller) => Promise<UserCaller>
  /** Whether the service key of this name is valid, or the administrator active, and has the scope. */
  readonly issuerPermits: (keyName: string, scope: string) => Promise<boolean>
}

export function createAdmission({
  store,
  buckets,
  tokens,
  reloadUser,
  refreshClaims,
  issuerPermits,
}: AdmissionDeps): Admission {
  const { database, tables } = store

  async function resolveIssuer(
    { bucket, issuer, use }: DownloadTicket | UploadTicket,
    origin: RequestOrigin,
  ): Promise<BucketCall> {
    const scope = scopeOf(bucket, use)
    const signer = callerOf(issuer, scope)
    if (signer.kind === 'service') {
      if (!(await issuerPermits(signer.keyName, scope))) throw invalidToken()
      return buckets.resolveFor(signer, bucket, origin)
    }
    const user = await reloadUser(signer)
    if (!user) throw invalidToken()
    return buckets.resolveFor(user, bucket, origin)
  }

  return {
    async authorizeDownload(request, key) {
      const call = buckets.resolve(request)
      const text = request.query.token
      if (text === undefined) return { call, token: null }
      const token = tokens.open('read', text)
      if (token.bucket !== call.bucket.name || token.key !== key) throw invalidToken()
      return { call: await resolveIssuer(token, request), token }
    },

    async authorizeUpload(request) {
      const call = buckets.resolve(request)
      const { caller, query } = request
      const { fileBytesMax } = call.bucket
      if (query.token !== undefined) {
        const ticket = tokens.open('write', query.token)
        if (ticket.bucket !== call.bucket.name || ticket.key !== query.key) throw invalidToken()
        const issued = await resolveIssuer(ticket, request)
        const uploader = issued.caller.auth?.id ?? null
        const bytesMax = Math.min(fileBytesMax, ticket.bytesMax ?? fileBytesMax)
        return { call: issued, ticket, owner: `grant:${ticket.id}`, uploader, bytesMax }
      }
      if (caller.kind === 'anonymous') throw authenticationRequired()
      const uploader = caller.auth?.id ?? null
      return { call, ticket: null, owner: callerKey(caller), uploader, bytesMax: fileBytesMax }
    },

    async checkActive({ call: { caller }, ticket }) {
      if (caller.kind !== 'user') return
      // A signed URL remains valid after the session that created it.
      if (!ticket) await refreshClaims(caller)
      else if (!(await reloadUser(caller))) throw invalidToken()
    },

    async checkTicket(ticket) {
      if (!ticket) return
      const [used] = await database.all(sql`SELECT id FROM ${tables.grants} WHERE id = ${sha256(ticket.id)}`)
      if (used) throw invalidToken()
    },

    async redeemTicket(tx, ticket) {
      if (!ticket) return
      const made =
        await tx.run(sql`INSERT INTO ${tables.grants} (id, expires) VALUES (${sha256(ticket.id)}, ${ticket.expires})
        ON CONFLICT (id) DO NOTHING`)
      if (made !== 1) throw invalidToken()
    },

    async restoreTicket(tx, ticket) {
      if (ticket) await tx.run(sql`DELETE FROM ${tables.grants} WHERE id = ${sha256(ticket.id)}`)
    },
  }
}
