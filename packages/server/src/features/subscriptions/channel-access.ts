/** Evaluates access rules for sockets: which channels a caller may use, and which rows of them it may see. */
import type { Caller } from '../../access/caller.ts'
import { denied, required } from '../../access/check.ts'
import { permitsScope } from '../../access/service-keys.ts'
import type { Log } from '../../base/log.ts'
import { ApiError } from '../../errors.ts'
import { subscriptionFiltersMax } from '../../limits/subscriptions.ts'
import type { Expr } from '../../query/expr.ts'
import { parseFields, parseFilterGroups } from '../../query/filter.ts'
import { type BroadcastChannels, broadcastNameOf, broadcastScope, findBroadcast } from './broadcasts/broadcast.ts'
import type { Resolve, TableCall } from './change-feed.ts'
import { type FindNamespace, findTarget, withoutTag } from './channels.ts'
import { createSubscriptionQuery, type SubscriptionQuery } from './matching/subscription-query.ts'
import { asSubscriptionError, SubscriptionError } from './sockets/subscription-error.ts'

/** The two groups as they were sent; null for none. */
export interface Filters {
  readonly filters: unknown
  readonly orFilters: unknown
}

/** The options of a subscription besides its channel. */
export interface SubscriptionOptions extends Filters {
  /** Whether changes carry the record before them, for service keys only. */
  readonly previous: boolean
  /** The names of the fields that changes carry, as they were sent; null for all. */
  readonly fields: unknown
}

export interface ChannelAccess {
  /** The query of a table's channel for a caller: the read rule AND the record id AND the filters. */
  query(caller: Caller, channel: string, options: SubscriptionOptions): Promise<SubscriptionQuery>
  /** Checks that the caller may use a broadcast channel. */
  useBroadcast(caller: Caller, channel: string, use: 'subscribe' | 'publish'): Promise<void>
}

export interface ChannelAccessDeps {
  readonly resolve: Resolve
  readonly findNamespace: FindNamespace
  readonly broadcasts: () => BroadcastChannels
  readonly log: Log
}

/** Hidden fields are hidden from all subscribers, service keys included. */
const visibleView = ({ table }: TableCall) => ({ table, showsHidden: false })

function orInvalidFilters<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof ApiError) throw new SubscriptionError('INVALID_FILTERS', error.message)
    throw error
  }
}

function parseShownFields(call: TableCall, fields: unknown): ReadonlySet<string> | null {
  if (fields === null) return null
  if (typeof fields !== 'string')
    throw new SubscriptionError('INVALID_FILTERS', 'fields must be text, such as "id,title"')
  return orInvalidFilters(() => parseFields(visibleView(call), fields))
}

function parseFilters(call: TableCall, { filters, orFilters }: Filters): Expr {
  for (const group of [filters, orFilters])
    if (Array.isArray(group) && group.length > subscriptionFiltersMax)
      throw new SubscriptionError(
        'INVALID_FILTERS',
        `At most ${subscriptionFiltersMax} conditions are allowed in each group`,
      )
  const groups = { filters: filters ?? undefined, orFilters: orFilters ?? undefined }
  return orInvalidFilters(() => parseFilterGroups(visibleView(call), groups).condition)
}

/** Every function throws `SubscriptionError`. */
export function createChannelAccess({ resolve, findNamespace, broadcasts, log }: ChannelAccessDeps): ChannelAccess {
  return {
    async query(caller, channel, options) {
      const target = findTarget(withoutTag(channel), findNamespace)
      if (!target) throw new SubscriptionError('INVALID_CHANNEL', 'This channel does not exist')
      const { table: tableName, docId, ...path } = target
      const call = await asSubscriptionError(async () => {
        const opened = await resolve({ ...path, tableName }, caller)
        required(opened.permissions.read(), caller)
        if (caller.kind === 'service' && !permitsScope(caller.scopes, `db:table:${tableName}:read`))
          throw denied(caller)
        return opened
      })
      if (options.previous && caller.kind !== 'service')
        throw new SubscriptionError('CHANNEL_ACCESS_DENIED', 'Only a service key may subscribe with previous: true')
      return createSubscriptionQuery({
        channel,
        call,
        docId,
        filters: parseFilters(call, options),
        hasPrevious: options.previous,
        fields: parseShownFields(call, options.fields),
      })
    },
    async useBroadcast(caller, channel, use) {
      const name = broadcastNameOf(channel)
      const found = name === null ? undefined : findBroadcast(broadcasts(), name)
      if (name === null || !found) throw new SubscriptionError('INVALID_CHANNEL', 'This channel does not exist')
      await asSubscriptionError(() => {
        if (caller.kind === 'service') {
          if (!permitsScope(caller.scopes, broadcastScope)) throw denied(caller)
          return
        }
        const rule = found[use]
        if (!(typeof rule === 'boolean' ? rule : allows(rule, caller, name))) throw denied(caller)
      })
    },
  }

  /** A rule that fails denies. */
  function allows(rule: (auth: Caller['auth'], name: string) => unknown, { auth }: Caller, name: string): boolean {
    try {
      return rule(auth, name) === true
    } catch (error) {
      log.error('subscriptions.broadcast_rule_failed', { name, error })
      return false
    }
  }
}
