/** The events of a page of the change log: which changes each shared query shows, and which queries list again. */
import { createSlices } from '../../../base/concurrency/slices.ts'
import type { Log } from '../../../base/log.ts'
import { deliverySliceMs, dependentViewsMax } from '../../../limits/subscriptions.ts'
import type { LogTail, Span } from '../change-feed.ts'
import { windowOf } from '../matching/change-window.ts'
import { TooManyChanges } from '../matching/classifier.ts'
import { reconcile } from '../matching/reconcile.ts'
import type { SharedQueries, SharedQuery } from '../matching/shared-queries.ts'
import type { ChangeEvent } from './messages.ts'
import type { Subscriber } from './subscribers.ts'

/** Events of a page by shared query, and the queries whose clients have to list again. */
export interface PageEvents {
  readonly events: Map<SharedQuery<Subscriber>, ChangeEvent[]>
  readonly resync: Set<SharedQuery<Subscriber>>
}

/** Classifies the changes of a page for all queries of its log, in slices of the event loop. */
export async function classifyPage(
  queries: SharedQueries<Subscriber>,
  span: Span,
  tail: LogTail,
  log: Log,
): Promise<PageEvents> {
  const nextSlice = createSlices({ sliceMs: deliverySliceMs })
  const at = { tail, position: span.to }
  const page: PageEvents = { events: new Map(), resync: new Set() }
  const dependents = queries.dependents(span.changes)
  for (const change of span.changes) {
    const affected = queries.affectedBy(change, at, dependents)
    for (const [query, classification] of affected instanceof Promise ? await affected : affected) {
      const own = page.events.get(query)
      if (classification === 'resync') page.resync.add(query)
      else if (own) own.push({ type: classification, change })
      else page.events.set(query, [{ type: classification, change }])
    }
    const pause = nextSlice()
    if (pause) await pause
  }
  let count = 0
  for (const query of dependents) {
    count += 1
    if (count > dependentViewsMax) page.resync.add(query)
    else await reconcileDependent(query, span, tail, page, log)
  }
  return page
}

/** A failure makes the clients of the query list again and affects no other query. */
async function reconcileDependent(
  query: SharedQuery<Subscriber>,
  span: Span,
  tail: LogTail,
  page: PageEvents,
  log: Log,
): Promise<void> {
  try {
    const events = await reconcile(query, windowOf(query, span), tail)
    if (events.length > 0) page.events.set(query, [...events])
  } catch (error) {
    if (!(error instanceof TooManyChanges))
      log.error('subscriptions.reconcile_failed', { channel: query.channel, error })
    page.resync.add(query)
  }
}
