/**
 * How much a caller may write: bytes added to change logs in a window, which are what the disk keeps of a write
 * whatever becomes of its records. Bytes are charged when they are known, so the write that exceeds the budget is done
 * and the next ones are refused until the window ends. Service keys are exempt, as they are from rate limits: what an
 * application's own server writes is the application's decision.
 */
import { type Caller, callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Log } from '../../../base/log.ts'
import type { Counters, Hit } from '../../../engines/cluster/cluster.ts'
import { rateLimited } from '../../../errors.ts'
import { writeBudgetCallersMax, writeBudgetStepBytes, writeBudgetWindowMs } from '../../../limits/writes.ts'

export interface WriteBudget {
  /** Whether the caller has a budget. Throws 429 with `Retry-After` while it is used up. */
  check(caller: Caller): boolean
  /** Adds what a committed write of the caller has logged. Never throws. */
  charge(caller: Caller, bytes: number): void
}

export interface WriteBudgetDeps {
  readonly counters: Counters
  /** Bytes in a window of `writeBudgetWindowMs`. */
  readonly bytesMax: () => number
  readonly clock: Clock
  readonly log: Log
}

interface Account {
  /** Bytes not yet counted together with the other nodes. */
  pending: number
  /** Until then writes are refused, in milliseconds since 1970. */
  refusedUntilMs: number
}

export function createWriteBudget({ counters, bytesMax, clock, log }: WriteBudgetDeps): WriteBudget {
  const accounts = createLru<string, Account>(writeBudgetCallersMax)

  function accountOf(key: string): Account {
    const known = accounts.get(key)
    if (known) return known
    const account = { pending: 0, refusedUntilMs: 0 }
    accounts.set(key, account)
    return account
  }

  function settle(account: Account, { count, resetMs }: Hit): void {
    if (count > bytesMax()) account.refusedUntilMs = clock.now() + resetMs
  }

  return {
    check(caller) {
      if (caller.kind === 'service') return false
      const refusedUntilMs = accounts.get(callerKey(caller))?.refusedUntilMs ?? 0
      // At most a window, also after the clock was set back.
      const leftMs = Math.min(refusedUntilMs - clock.now(), writeBudgetWindowMs)
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
      if (!(hit instanceof Promise)) return settle(account, hit)
      hit.then(
        (later) => settle(account, later),
        (error: unknown) => {
          // Counted with the next ones: the write itself is done.
          account.pending += counted
          log.warn('records.write_budget_not_counted', { error })
        },
      )
    },
  }
}
