/**
 * Importing users: up to a thousand in a request, each by itself, so that a bad one fails alone. What takes long is
 * hashing passwords given in plain text; it is paced to leave the threads to sign-ins, and bounded in time. What was
 * not reached is told as an error, and sending the same batch again goes on from there: users who exist are skipped
 * before anything is hashed.
 */
import type { Clock } from '../../../base/clock.ts'
import { createGate } from '../../../base/concurrency/gate.ts'
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
import type { Accounts, NewAccount } from '../accounts/accounts.ts'
import type { Passwords } from '../accounts/passwords.ts'
import { normalizeEmail } from '../email/normalize.ts'
import { type ImportEntry, importEntry, isUserId } from './input.ts'

/** What became of one entry. */
export interface ImportResult {
  /** The new user's, or the one's who was there; null where an entry that failed named none. */
  readonly id: string | null
  readonly email: string | null
  readonly status: 'created' | 'skipped' | 'error'
  /** What was wrong, every bad field named; only with the status `error`. */
  readonly error?: string
  /** The same text as `error`, its name before. */
  readonly message?: string
  /** The bad fields, as in a 400; absent where no field is to blame. */
  readonly data?: FieldErrors
}

export interface ImportReport {
  readonly imported: number
  readonly skipped: number
  readonly errors: number
  /** In the order of the entries. */
  readonly results: readonly ImportResult[]
}

/** Never throws for an entry; 503 while as many imports as may are running. */
export type ImportUsers = (entries: readonly unknown[]) => Promise<ImportReport>

export interface ImportDeps {
  readonly database: Database
  readonly accounts: Accounts
  readonly passwords: Passwords
  readonly clock: Clock
}

/** An entry that may become a user; a password in plain text is still to be hashed. */
interface Candidate {
  readonly account: NewAccount & { readonly id: string; readonly email: string }
  readonly password: string | null
}

/** Entries looked at before other requests get their turn: a hundred with the most metadata are some milliseconds. */
const entriesPerTurn = 50

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function createImport({ database, accounts, passwords, clock }: ImportDeps): ImportUsers {
  const newId = createUuid7(clock)
  // Half of what may hash at all, so that a sign-in waits behind a few hashes and not behind a thousand.
  const gate = createGate({ running: Math.ceil(hashesAtOnce / 2), waiting: importsMax * importUsersAtOnce })
  let running = 0

  /** Throws 400. */
  function parseEntry(entry: unknown): Candidate {
    const { id, email, password, passwordHash, verified, ...rest } = validate(importEntry, entry)
    const given: Partial<ImportEntry> = rest
    if (typeof password === 'string' && typeof passwordHash === 'string')
      throw refused('Give either password or passwordHash, not both')
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

  /** Candidates in the places of their entries, and results in the places of the others. */
  async function parseEntries(entries: readonly unknown[]): Promise<readonly (Candidate | ImportResult)[]> {
    const taken = new Set<string>()
    const parsed: (Candidate | ImportResult)[] = []
    for (const [at, entry] of entries.entries()) {
      if (at % entriesPerTurn === entriesPerTurn - 1) await nextTurn()
      try {
        const candidate = parseEntry(entry)
        const { id, email } = candidate.account
        // An id holds no @, so the two kinds of names cannot meet.
        if (taken.has(id) || taken.has(email)) throw refused('Is in this batch already')
        taken.add(id).add(email)
        parsed.push(candidate)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        parsed.push(failed(entry, error))
      }
    }
    return parsed
  }

  /** The user who has the id or the e-mail already. */
  async function findExisting({ account: { id, email } }: Candidate): Promise<{ readonly id: string } | null> {
    return (await accounts.findByEmail(database, email)) ?? (await accounts.find(database, id))
  }

  /** Null when the time is over, or when sign-ins need all there is. */
  async function findHash(password: string, untilMs: number): Promise<{ readonly passwordHash: string } | null> {
    const hash = async () => (clock.now() < untilMs ? { passwordHash: await passwords.hash(password) } : null)
    try {
      return await (gate.enter(hash) ?? null)
    } catch (error) {
      if (error instanceof ApiError) return null
      throw error
    }
  }

  async function importOne(candidate: Candidate, untilMs: number): Promise<ImportResult> {
    const { account, password } = candidate
    const { id, email } = account
    const existing = await findExisting(candidate)
    if (existing) return { id: existing.id, email, status: 'skipped' }
    const hashed = password === null ? {} : await findHash(password, untilMs)
    if (hashed === null) return { id: null, email, ...errorResult('Not reached in time: import it again') }
    try {
      await database.write((tx) => accounts.insert(tx, { ...account, ...hashed }))
      return { id, email, status: 'created' }
    } catch (error) {
      // Somebody signed up meanwhile.
      if (error instanceof EngineError && error.kind === 'unique')
        return { id: (await findExisting(candidate))?.id ?? null, email, status: 'skipped' }
      throw error
    }
  }

  async function run(entries: readonly unknown[]): Promise<ImportReport> {
    const untilMs = clock.now() + importTimeoutMs
    const parsed = await parseEntries(entries)
    const results = await mapBounded(parsed, importUsersAtOnce, (one) =>
      'status' in one ? one : importOne(one, untilMs),
    )
    const count = (status: ImportResult['status']): number => results.filter((one) => one.status === status).length
    return { imported: count('created'), skipped: count('skipped'), errors: count('error'), results }
  }

  return async (entries) => {
    if (running >= importsMax) throw unavailable()
    running += 1
    try {
      return await run(entries)
    } finally {
      running -= 1
    }
  }
}

const refused = (message: string): ApiError => apiError('invalid-input', message)

/** What of a bad entry can be said to be its name. */
function failed(entry: unknown, { message, data }: ApiError): ImportResult {
  const { id, email } = (typeof entry === 'object' && entry !== null ? entry : {}) as Record<string, unknown>
  return {
    id: typeof id === 'string' && isUserId(id) ? id : null,
    email: typeof email === 'string' && email.length <= emailCharsMax ? email : null,
    ...errorResult(message, data),
  }
}

/** All mistakes in one line, so that one look at a report is enough to mend an entry. */
function errorResult(message: string, data?: FieldErrors): Pick<ImportResult, 'status' | 'error' | 'message' | 'data'> {
  const mistakes = Object.entries(data ?? {}).map(([field, mistake]) => `${field}: ${mistake.message}`)
  const error = mistakes.length > 0 ? mistakes.join('; ') : message
  // Names of fields are the sender's and stand in it three times: a report of a thousand entries must stay small.
  if (error.length > importErrorCharsMax) {
    const cut = `${error.slice(0, importErrorCharsMax).toWellFormed()}…`
    return { status: 'error', error: cut, message: cut }
  }
  return { status: 'error', error, message: error, ...(data === undefined ? {} : { data }) }
}

/** Null stands for what an account has by itself. */
const withoutNulls = <T extends object>(given: T): { [Name in keyof T]?: Exclude<T[Name], null | undefined> } =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== undefined)) as never

/** The results in the order of the items. After a failure nothing more is begun, and it is thrown. */
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
