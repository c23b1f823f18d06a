/**
 * Rate limit on written data: bytes that a caller adds to change logs in a window. The log keeps them on disk even if
 * the records are deleted. Bytes are charged after the write, so the write that exceeds the budget succeeds, and the
 * next ones are rejected until the window ends. Service keys are exempt, as they are from rate limits.
 */
import { type Caller, callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import type { Counters, Hit } from '../../../engines/cluster/cluster.ts'
import { rateLimited } from '../../../errors.ts'
import { writeBudgetCallersMax, writeBudgetStepBytes, writeBudgetWindowMs } from '../../../limits/writes.ts'

export interface WriteBudget {
  /** Whether the caller has a budget. Throws 429 with `Retry-After` while it is exhausted. */
  check(caller: Caller): boolean
  /** Adds the bytes that a committed write of the caller logged. Never throws. */
  charge(caller: Caller, bytes: number): void
}

export interface WriteBudgetDeps {
  readonly counters: Counters
  /** Bytes per window of `writeBudgetWindowMs`. */
  readonly bytesMax: () => number
  readonly clock: Clock
  readonly log: Log
}

interface Account {
  /** Bytes not yet added to the shared counter. */
  pending: number
  /** Writes are rejected until then, in milliseconds since 1970. */
  blockedUntilMs: number
}

export function createWriteBudget({ counters, bytesMax, clock, log }: WriteBudgetDeps): WriteBudget {
  const accounts = createLru<string, Account>(writeBudgetCallersMax)

  function accountOf(key: string): Account {
    const known = accounts.get(key)
    if (known) return known
    const account = { pending: 0, blockedUntilMs: 0 }
    accounts.set(key, account)
    return account
  }

  function applyCount(account: Account, { count, resetMs }: Hit): void {
    if (count > bytesMax()) account.blockedUntilMs = clock.now() + resetMs
  }

  return {
    check(caller) {
      if (caller.kind === 'service') return false
      const blockedUntilMs = accounts.get(callerKey(caller))?.blockedUntilMs ?? 0
      // Never longer than a window, even after the clock was set back.
      const leftMs = Math.min(blockedUntilMs - clock.now(), writeBudgetWindowMs)
      if (leftMs > 0) throw rateLimited(leftMs / 1000, 'Too many bytes written; try again later')
      return true
    },
    charge(caller, bytes) {
      if (bytes === 0) return
      const key = callerKey(caller)
      const account = accountOf(key)
      account.pending += bytes
      if (account.pending < writeBudgetStepBytes) return
      const counted = account.pending
      account.pending = 0
      const hit = counters.hit(`writes:${key}`, writeBudgetWindowMs, counted)
      if (!(hit instanceof Promise)) return applyCount(account, hit)
      hit.then(
        (later) => applyCount(account, later),
        (error: unknown) => {
          // The write has succeeded; count its bytes with the next ones.
          account.pending += counted
          log.warn('records.write_budget_not_counted', { error })
        },
      )
    },
  }
}
