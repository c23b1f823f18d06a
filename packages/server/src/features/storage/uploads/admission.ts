/**
 * Who asks for a bucket, by credentials or by a signed URL. A URL's token stands for its issuer, who must still be who
 * they were; a token that is not good is refused, whatever the rules would have allowed its bearer.
 */
import { type Caller, callerKey, type UserCaller } from '../../../access/caller.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { authenticationRequired, invalidToken } from '../../../errors.ts'
import { type BucketCall, type Buckets, scopeOf } from '../buckets.ts'
import type { Store } from '../schema.ts'
import { callerOf, type DownloadTicket, type Tokens, type UploadTicket } from './tokens.ts'

/** The query parameters of a signed URL; undefined where they were not sent. */
export interface SignedQuery {
  readonly token?: string | undefined
  readonly key?: string | undefined
}

export interface DownloadAuthorization {
  readonly call: BucketCall
  readonly token: DownloadTicket | null
}

export interface UploadAuthorization {
  readonly call: BucketCall
  readonly ticket: UploadTicket | null
  /** Whose the upload is: its session can be continued by this one alone. */
  readonly owner: string
  /** The user who counts as uploader; null for the service's own. */
  readonly uploader: string | null
  /** Of one file, by the bucket and by the ticket. */
  readonly bytesMax: number
}

export interface Admission {
  /** Throws 404 for an unknown bucket, 401 for a bad token or one for another object. */
  authorizeDownload(
    bucket: string,
    caller: Caller,
    key: string,
    token: string | undefined,
  ): Promise<DownloadAuthorization>
  /** Throws the same, and 401 for an anonymous caller without a token. */
  authorizeUpload(bucket: string, caller: Caller, query: SignedQuery): Promise<UploadAuthorization>
  /**
   * To be asked when the bytes are there, which may be hours later. Throws 401 where the user was thrown out since;
   * that their token has expired meanwhile is no matter.
   */
  checkActive(authorization: UploadAuthorization): Promise<void>
  /** Throws 401 for a ticket that was used: early, for those who would send bytes in vain. */
  checkTicket(ticket: UploadTicket | null): Promise<void>
  /** Uses the ticket up. Throws 401 where somebody else has. */
  redeemTicket(tx: Transaction, ticket: UploadTicket | null): Promise<void>
}

export interface AdmissionDeps {
  readonly store: Store
  readonly buckets: Buckets
  readonly tokens: Tokens
  /** A user with the role and the claims of now; null for one who is disabled or deleted. */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /** A user with the role and the claims of now. Rejects with 401 once their session has ended. */
  readonly refreshClaims: (user: UserCaller) => Promise<UserCaller>
  /** Whether the service key of this name is still good and has the scope. */
  readonly keyPermits: (keyName: string, scope: string) => boolean
}

export function createAdmission({
  store,
  buckets,
  tokens,
  reloadUser,
  refreshClaims,
  keyPermits,
}: AdmissionDeps): Admission {
  const { database, tables } = store

  async function resolveIssuer(bucket: string, { issuer, use }: DownloadTicket | UploadTicket): Promise<BucketCall> {
    const scope = scopeOf(bucket, use)
    const signer = callerOf(issuer, scope)
    if (signer.kind === 'service') {
      if (!keyPermits(signer.keyName, scope)) throw invalidToken()
      return buckets.resolve(bucket, signer)
    }
    const user = await reloadUser(signer)
    if (!user) throw invalidToken()
    return buckets.resolve(bucket, user)
  }

  return {
    async authorizeDownload(bucket, caller, key, text) {
      const call = buckets.resolve(bucket, caller)
      if (text === undefined) return { call, token: null }
      const token = tokens.open('read', text)
      if (token.bucket !== bucket || token.key !== key) throw invalidToken()
      return { call: await resolveIssuer(bucket, token), token }
    },

    async authorizeUpload(bucket, caller, query) {
      const call = buckets.resolve(bucket, caller)
      const { fileBytesMax } = call.bucket
      if (query.token !== undefined) {
        const ticket = tokens.open('write', query.token)
        if (ticket.bucket !== bucket || ticket.key !== query.key) throw invalidToken()
        const issued = await resolveIssuer(bucket, ticket)
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
      // A signed URL outlives the session that it was made in.
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
  }
}
