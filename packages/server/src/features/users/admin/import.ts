/**
 * User import: up to a thousand users per request, each imported independently, so that one invalid entry fails alone.
 * Hashing plain-text passwords dominates the time; it is throttled to leave capacity for sign-ins, and has a deadline.
 * Entries beyond the deadline are reported as errors. Repeating the batch continues there: existing users are skipped
 * before anything is hashed.
 */
import { callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createSemaphore } from '../../../base/concurrency/semaphore.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { hashesAtOnce } from '../../../base/crypto/password-hash.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { ApiError, apiError, type FieldErrors, unavailable } from '../../../errors.ts'
import { validate } from '../../../http/input/validate.ts'
import {
  emailCharsMax,
  importErrorCharsMax,
  importsMax,
  importTimeoutMs,
  importUsersAtOnce,
} from '../../../limits/users.ts'
import type { HookRequest } from '../../before-hooks.ts'
import type { NewAccount } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Passwords } from '../accounts/passwords.ts'
import { normalizeEmail } from '../email/normalize.ts'
import type { AccountHooks } from '../hooks/account-hooks.ts'
import { type HookedRequest, hookedRequest } from '../hooks/hooked-request.ts'
import { type ImportEntry, importEntry, isUserId } from './input.ts'

/** Result of one entry. */
export interface ImportResult {
  /** Id of the new or the existing user; null for a failed entry without a valid id. */
  readonly id: string | null
  readonly email: string | null
  readonly status: 'created' | 'skipped' | 'error'
  /** Why the entry was rejected, naming every invalid field. Only with the status `error`. */
  readonly error?: string
  /** Same text as `error`; its former name. */
  readonly message?: string
  /** Invalid fields, as in a 400. Absent if the error does not concern a field. */
  readonly data?: FieldErrors
}

export interface ImportReport {
  readonly imported: number
  readonly skipped: number
  readonly errors: number
  /** In the order of the entries. */
  readonly results: readonly ImportResult[]
}

/** Never rejects because of an entry. Rejects with 503 while `importsMax` imports run. */
export type ImportUsers = (entries: readonly unknown[], request: HookRequest) => Promise<ImportReport>

export interface ImportDeps {
  readonly database: Database
  readonly accounts: Accounts
  readonly hooks: Pick<AccountHooks, 'write'>
  readonly passwords: Passwords
  readonly clock: Clock
}

/** A valid entry. A plain-text `password` has not been hashed yet. */
interface Candidate {
  readonly account: NewAccount & { readonly id: string; readonly email: string }
  readonly password: string | null
}

/** Entries parsed per event-loop tick: a hundred with maximum metadata take a few milliseconds. */
const entriesPerTick = 50

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function createImport({ database, accounts, hooks, passwords, clock }: ImportDeps): ImportUsers {
  const newId = createUuid7(clock)
  // Half of the hashing capacity, so that a sign-in waits for a few hashes and not for a thousand.
  const gate = createSemaphore({ running: Math.ceil(hashesAtOnce / 2), waiting: importsMax * importUsersAtOnce })
  let running = 0

  /** Throws 400. */
  function parseEntry(entry: unknown): Candidate {
    const { id, email, password, passwordHash, verified, ...rest } = validate(importEntry, entry)
    const given: Partial<ImportEntry> = rest
    if (typeof password === 'string' && typeof passwordHash === 'string')
      throw invalidEntry('Set either password or passwordHash, not both')
    if (typeof password === 'string') passwords.check(password)
    return {
      account: {
        ...withoutNulls(given),
        id: id ?? newId(),
        email: normalizeEmail(email),
        passwordHash: typeof passwordHash === 'string' ? passwords.parseImported(passwordHash) : null,
        emailVerifiedAtMs: verified ? clock.now() : null,
      },
      password: password ?? null,
    }
  }

  /** For each entry, in order, a candidate, or the result if it is invalid. */
  async function parseEntries(entries: readonly unknown[]): Promise<readonly (Candidate | ImportResult)[]> {
    const taken = new Set<string>()
    const parsed: (Candidate | ImportResult)[] = []
    for (const [at, entry] of entries.entries()) {
      if (at % entriesPerTick === entriesPerTick - 1) await nextTick()
      try {
        const candidate = parseEntry(entry)
        const { id, email } = candidate.account
        // An id contains no @, so ids and emails cannot collide.
        if (taken.has(id) || taken.has(email))
          throw invalidEntry('Another entry of this batch has the same id or email')
        taken.add(id).add(email)
        parsed.push(candidate)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        parsed.push(failed(entry, error))
      }
    }
    return parsed
  }

  /** The existing user with the id or the email. */
  async function findExisting({ account: { id, email } }: Candidate): Promise<{ readonly id: string } | null> {
    return (await accounts.findByEmail(database, email)) ?? (await accounts.find(database, id))
  }

  /** Null after the deadline, or if the hashing queue is full. */
  async function hashBefore(
    password: string,
    caller: string,
    deadlineMs: number,
  ): Promise<{ readonly passwordHash: string } | null> {
    const hash = async () =>
      clock.now() < deadlineMs ? { passwordHash: await passwords.hash(password, caller) } : null
    try {
      return await (gate.run(hash) ?? null)
    } catch (error) {
      if (error instanceof ApiError) return null
      throw error
    }
  }

  async function importOne(candidate: Candidate, deadlineMs: number, request: HookedRequest): Promise<ImportResult> {
    const { account, password } = candidate
    const { id, email } = account
    const existing = await findExisting(candidate)
    if (existing) return { id: existing.id, email, status: 'skipped' }
    const hashed = password === null ? {} : await hashBefore(password, callerKey(request.caller), deadlineMs)
    if (hashed === null) return { id: null, email, ...errorResult('Not imported before the deadline; import it again') }
    try {
      const origin = { provider: null, request }
      await hooks.write((tx) => accounts.insert(tx, { ...account, ...hashed }, origin))
      return { id, email, status: 'created' }
    } catch (error) {
      // Refused by the application, whose data may have any shape, or its hook has failed.
      if (error instanceof ApiError) return { id: null, email, ...errorResult(error.message) }
      // The user signed up in the meantime.
      if (error instanceof EngineError && error.kind === 'unique')
        return { id: (await findExisting(candidate))?.id ?? null, email, status: 'skipped' }
      throw error
    }
  }

  async function run(entries: readonly unknown[], request: HookRequest): Promise<ImportReport> {
    const deadlineMs = clock.now() + importTimeoutMs
    const parsed = await parseEntries(entries)
    const results = await mapBounded(parsed, importUsersAtOnce, (one) =>
      'status' in one ? one : importOne(one, deadlineMs, hookedRequest(request)),
    )
    const count = (status: ImportResult['status']): number => results.filter((one) => one.status === status).length
    return { imported: count('created'), skipped: count('skipped'), errors: count('error'), results }
  }

  return async (entries, request) => {
    if (running >= importsMax) throw unavailable()
    running += 1
    try {
      return await run(entries, request)
    } finally {
      running -= 1
    }
  }
}

const invalidEntry = (message: string): ApiError => apiError('invalid-input', message)

/** The result of an invalid entry, with its id and email if they are usable. */
function failed(entry: unknown, { message, data }: ApiError): ImportResult {
  const { id, email } = (typeof entry === 'object' && entry !== null ? entry : {}) as Record<string, unknown>
  return {
    id: typeof id === 'string' && isUserId(id) ? id : null,
    email: typeof email === 'string' && email.length <= emailCharsMax ? email : null,
    ...errorResult(message, data),
  }
}

/** All errors of an entry in one line, so that the report is enough to correct it. */
function errorResult(message: string, data?: FieldErrors): Pick<ImportResult, 'status' | 'error' | 'message' | 'data'> {
  const problems = Object.entries(data ?? {}).map(([field, { message }]) => `${field}: ${message}`)
  const error = problems.length > 0 ? problems.join('; ') : message
  // Field names come from the client and appear three times; a report of a thousand entries must stay small.
  if (error.length > importErrorCharsMax) {
    const cut = `${error.slice(0, importErrorCharsMax).toWellFormed()}…`
    return { status: 'error', error: cut, message: cut }
  }
  return { status: 'error', error, message: error, ...(data === undefined ? {} : { data }) }
}

/** Drops null members, so that the defaults of an account apply. */
const withoutNulls = <T extends object>(given: T): { [Name in keyof T]?: Exclude<T[Name], null | undefined> } =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined)) as never

/** Maps with bounded concurrency, in order. The first failure rejects and starts no further item. */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Result | Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const left = items.entries()
  let hasFailed = false
  const take = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (hasFailed) return
      try {
        results[at] = await work(item)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, take))
  return results
}
