/** Requests of the callers of an attack, over HTTP, and whether the server did what they asked. */
import { claimMark, isIdentityMark } from '../../../features/records/rules/matrix/sample-caller.ts'
import type { AttackServer } from './attack-server.ts'
import { type AttackerKind, attackers } from './findings.ts'

/** Whose the records are. */
export const victimId = 'victim'
const [victimTenant, otherTenant] = ['tenant-a', 'tenant-b']
/** Ids of instances that the victim may own: by the user's id or by a claim. */
export const victimInstances: readonly string[] = [victimId, victimTenant]

/** The value of a mark in the records of the victim. */
export const valueOfMark = (mark: string): string => {
  if (!isIdentityMark(mark)) return victimTenant
  return mark.includes('email') ? `${victimId}@example.com` : victimId
}

export interface Requested {
  readonly body?: unknown
  readonly form?: FormData
  /** A body that is no JSON. */
  readonly raw?: string
}

export interface Answer {
  readonly status: number
  readonly isDone: boolean
  readonly body: Record<string, unknown> | null
}

export type Send = (method: string, path: string, requested?: Requested) => Promise<Answer>

export interface Callers {
  readonly service: Send
  readonly victim: Send
  readonly attackers: readonly (readonly [kind: AttackerKind, send: Send, token: string | null])[]
}

/** The callers of an attack; `claims` are those that rules compare, and whether each is a list. */
export function createCallers(server: AttackServer, claims: ReadonlyMap<string, boolean>): Callers {
  const claimsOf = (tenant: string): Record<string, unknown> =>
    Object.fromEntries([...claims].map(([name, isList]) => [name, isList ? [tenant] : tenant]))
  const tokenOf = (id: string, tenant: string): string => server.sign({ id, claims: claimsOf(tenant) })
  const sendAs =
    (headers: Readonly<Record<string, string>>): Send =>
    async (method, path, { body, form, raw } = {}) => {
      const isJson = body !== undefined || raw !== undefined
      const response = await fetch(server.url + path, {
        method,
        headers: { ...headers, ...(isJson && { 'Content-Type': 'application/json' }) },
        body: form ?? raw ?? (body === undefined ? null : JSON.stringify(body)),
      })
      const text = await response.text()
      const isObject = response.headers.get('content-type')?.includes('json') === true && text.startsWith('{')
      return { status: response.status, isDone: response.ok, body: isObject ? JSON.parse(text) : null }
    }
  const tokens: Readonly<Record<AttackerKind, string | null>> = {
    anonymous: null,
    otherTenant: tokenOf('outsider', otherTenant),
    otherUser: tokenOf('intruder', victimTenant),
  }
  const bearer = (token: string | null): Send => sendAs(token === null ? {} : { Authorization: `Bearer ${token}` })
  return {
    service: sendAs({ 'X-Platform-Service-Key': server.serviceKey }),
    victim: bearer(tokenOf(victimId, victimTenant)),
    attackers: attackers.map((kind) => [kind, bearer(tokens[kind]), tokens[kind]] as const),
  }
}

/** The names of claims by their marks. */
export const claimNames = (marks: ReadonlyMap<string, boolean>, names: Iterable<string>): Map<string, boolean> => {
  const claims = new Map<string, boolean>()
  for (const name of names) {
    const isList = marks.get(claimMark(name))
    if (isList !== undefined) claims.set(name, isList)
  }
  return claims
}
