/**
 * The section `push`: its shape, the credentials in it, and the form the push feature runs on. What users write it with
 * is `define-push`. Private keys are key objects from here on, which neither logs nor JSON show.
 */
import { createECDH, createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { isProviderUrl } from '../../../engines/fetch/bounded-fetch.ts'
import { parsedWith, strictObject } from '../../shape-parts.ts'

export interface FcmConfig {
  readonly projectId: string
  readonly clientEmail: string
  /** RSA. */
  readonly privateKey: KeyObject
  /** Which of the account's keys it is. */
  readonly keyId: string | null
  /** Whole URLs; `topics` is followed by `:batchAdd` and `:batchRemove`. */
  readonly endpoints: { readonly token: string; readonly send: string; readonly topics: string }
}

export interface VapidConfig {
  readonly subject: string
  /** An uncompressed point of P-256, as base64url: what browsers subscribe with. */
  readonly publicKey: string
  readonly privateKey: KeyObject
  /** Origins. */
  readonly localServices: ReadonlySet<string>
}

/** Null: there are no credentials. */
export interface PushConfig {
  readonly fcm: FcmConfig | null
  readonly vapid: VapidConfig | null
}

export interface ServiceAccount {
  readonly clientEmail: string
  readonly privateKey: KeyObject
  readonly keyId: string | null
  readonly projectId: string | null
  readonly tokenUri: string | null
}

/** It stands in a path. */
const projectIdPattern = /^[a-z0-9][a-z0-9.:-]{0,99}$/

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

function readAccountFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Error('must be the JSON of a service account, or the path of a file with it: there is no such file')
  }
}

function parseAccountJson(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed as Readonly<Record<string, unknown>>
  } catch {
    // What is said of it below does not quote it: it holds a key.
  }
  throw new Error('is not JSON')
}

/** Throws for what cannot sign; messages never quote the text. */
function parseServiceAccount(written: string): ServiceAccount {
  const text = written.trimStart().startsWith('{') ? written : readAccountFile(written)
  const { client_email, private_key, private_key_id, project_id, token_uri } = parseAccountJson(text)
  const [clientEmail, pem] = [textOf(client_email), textOf(private_key)]
  if (clientEmail === null || pem === null) throw new Error('has no client_email and private_key')
  return {
    clientEmail,
    privateKey: parseRsaKey(pem),
    keyId: textOf(private_key_id),
    projectId: textOf(project_id),
    tokenUri: textOf(token_uri),
  }
}

function parseRsaKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'rsa') return key
  } catch {
    // The library's own words may quote the key.
  }
  throw new Error('has a private_key that is not an RSA key in PEM')
}

const providerUrl = parsedWith((text) => {
  if (!isProviderUrl(text)) throw new Error('must be an https URL, or an http URL on this machine')
  return text
})

const fcmShape = strictObject({
  projectId: z.string().regex(projectIdPattern, 'is not the id of a Firebase project').optional(),
  serviceAccount: parsedWith(parseServiceAccount).optional(),
  endpoints: strictObject({
    token: providerUrl.optional(),
    send: providerUrl.optional(),
    topics: providerUrl.optional(),
  }).prefault({}),
}).superRefine(({ projectId, serviceAccount }, context) => {
  if (serviceAccount && projectId === undefined && !projectIdPattern.test(serviceAccount.projectId ?? ''))
    context.addIssue({ code: 'custom', path: ['projectId'], message: 'is missing, and the service account names none' })
})

const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')
const isBase64Url = (text: string): boolean => /^[\w-]+$/.test(text)

const publicKeyShape = z
  .string()
  .refine(
    (text) => isBase64Url(text) && bytesOf(text).length === 65 && bytesOf(text)[0] === 4,
    'must be a public key as `plinth keys vapid` prints it',
  )

const privateKeyShape = z
  .string()
  .refine(
    (text) => isBase64Url(text) && bytesOf(text).length === 32,
    'must be a private key as `plinth keys vapid` prints it',
  )

const serviceOrigin = parsedWith((text) => {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.origin !== text)
    throw new Error('must be an origin such as "https://push.internal:8443", without a path')
  return text
})

const subject = parsedWith((text) => {
  if (!/^(?:mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(text))
    throw new Error('must be "mailto:" and an address, or an https URL')
  return text
})

const vapidShape = strictObject({
  subject,
  publicKey: publicKeyShape,
  privateKey: privateKeyShape.optional(),
  localServices: z.array(serviceOrigin).default([]),
}).superRefine(({ publicKey, privateKey }, context) => {
  if (privateKey === undefined || publicOf(privateKey) === publicKey) return
  context.addIssue({ code: 'custom', path: ['publicKey'], message: 'is not the one that belongs to the private key' })
})

/** The public key of a private one, both as base64url; null where the number is no key. */
function publicOf(privateKey: string): string | null {
  try {
    const curve = createECDH('prime256v1')
    curve.setPrivateKey(bytesOf(privateKey))
    return curve.getPublicKey('base64url')
  } catch {
    return null
  }
}

export const pushShape = strictObject({ fcm: fcmShape.optional(), vapid: vapidShape.optional() })
export type WrittenPush = z.output<typeof pushShape>

/** The section in which nothing was found wrong. */
export const createPush = ({ fcm, vapid }: WrittenPush): PushConfig =>
  Object.freeze({ fcm: createFcm(fcm), vapid: createVapid(vapid) })

function createFcm(written: WrittenPush['fcm']): FcmConfig | null {
  if (written?.serviceAccount === undefined) return null
  const { clientEmail, privateKey, keyId, tokenUri, ...account } = written.serviceAccount
  const projectId = written.projectId ?? account.projectId ?? ''
  const { token, send, topics } = written.endpoints
  return Object.freeze({
    projectId,
    clientEmail,
    privateKey,
    keyId,
    endpoints: Object.freeze({
      token: endpointOf(token ?? tokenUri ?? 'https://oauth2.googleapis.com', '/token'),
      send: endpointOf(send ?? 'https://fcm.googleapis.com', `/v1/projects/${projectId}/messages:send`),
      topics: endpointOf(topics ?? 'https://iid.googleapis.com', '/iid/v1'),
    }),
  })
}

/** An origin alone has the path that Google's has. */
function endpointOf(written: string, path: string): string {
  const url = new URL(written)
  return url.pathname === '/' ? `${url.origin}${path}` : written.replace(/\/$/, '')
}

function createVapid(written: WrittenPush['vapid']): VapidConfig | null {
  if (written?.privateKey === undefined) return null
  const { subject, publicKey, privateKey, localServices } = written
  const point = bytesOf(publicKey)
  const coordinates = { x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) }
  const key = { kty: 'EC', crv: 'P-256', d: privateKey, ...coordinates }
  return Object.freeze({
    subject,
    publicKey,
    privateKey: createPrivateKey({ key, format: 'jwk' }),
    localServices: new Set(localServices),
  })
}

/** What is allowed but hardly meant, as sentences. */
export function findPushWarnings({ fcm, vapid }: WrittenPush): string[] {
  const without = (place: string) => `${place} is not set: nothing is sent in this way`
  return [
    ...(fcm && fcm.serviceAccount === undefined ? [without('push.fcm.serviceAccount')] : []),
    ...(vapid && vapid.privateKey === undefined ? [without('push.vapid.privateKey')] : []),
  ]
}
