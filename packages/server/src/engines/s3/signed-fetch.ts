/**
 * Signed requests to a bucket of an S3-compatible store, one attempt each: URLs, signatures, and the store's errors.
 * `requests` owns deadlines and retries.
 */
import { AwsV4Signer } from 'aws4fetch'
import { sha256 as sha256Of } from '../../base/crypto/hash.ts'
import type { StoreAddress } from '../blobs/store-address.ts'
import { textIn } from './xml.ts'

/** A body that can be sent repeatedly without being held in memory. */
export interface S3Body {
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  stream(): ReadableStream<Uint8Array>
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Absent for the bucket itself. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | S3Body
  /** Error codes that are valid outcomes: `send` returns null for them. */
  readonly tolerated?: readonly string[]
  /** Continues an operation the caller has partly completed: attempted even while the circuit is open. */
  readonly isContinuation?: boolean
}

/** An error response of the store; `retriable` if a retry may succeed. */
export class S3Error extends Error {
  readonly retriable: boolean
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`The store answered ${status} ${code}`)
    this.name = 'S3Error'
    this.retriable = status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout'
  }
}

/** Sends a request once. Rejects with `S3Error`, or with the runtime's error if there is no response. */
export type SignedFetch = (request: S3Request, signal: AbortSignal) => Promise<Response>

export function createSignedFetch(address: StoreAddress): SignedFetch {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey } = address
  const base = `${endpoint.replace(/\/+$/, '')}/${bucket}`
  const signingKeys = new Map<string, ArrayBuffer>()

  function sign({ method, key, query = {}, headers, body = '' }: S3Request): AwsV4Signer {
    const url = `${base}${key === undefined ? '' : `/${key}`}?${new URLSearchParams(query)}`
    // The signature covers the body: it cannot be changed in transit, with TLS or without.
    const sha256 = typeof body === 'string' ? sha256Of(body) : body.sha256
    return new AwsV4Signer({
      method,
      url,
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      cache: signingKeys,
    })
  }

  return async (request, signal) => {
    const { url, method, headers } = await sign(request).sign()
    const { body } = request
    // Stores require the body's length in advance.
    if (typeof body === 'object') headers.set('content-length', String(body.size))
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : body.stream() }),
      signal,
      // The signature is invalid at another host.
      redirect: 'manual',
    })
    if (response.ok) return response
    throw new S3Error(response.status, textIn(await response.text(), 'Code') ?? codeOf(response.status, request))
  }
}

/** A response to HEAD has no body with an error code. */
function codeOf(status: number, { key }: S3Request): string {
  if (status === 404) return key === undefined ? 'NoSuchBucket' : 'NoSuchKey'
  return status === 403 ? 'AccessDenied' : `Http${status}`
}
