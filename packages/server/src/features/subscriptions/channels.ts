/**
 * Parses and formats channel names. Does not check whether the table exists or who may subscribe to it
 * (`channel-access`).
 */
import { invalidField } from '../../errors.ts'
import { channelCharsMax } from '../../limits/subscriptions.ts'

/** The table, or the record, that a channel names. */
export interface Target {
  readonly namespace: string
  readonly instanceId: string | null
  readonly table: string
  readonly docId: string | null
}

const prefix = 'dblive'

/** A declared namespace. */
export interface Namespace {
  /** Whether it is dynamic. */
  readonly instance: boolean
  readonly tables: ReadonlyMap<string, unknown>
}

/** Undefined for a namespace that is not declared. */
export type FindNamespace = (name: string) => Namespace | undefined

/** Whether the table of a channel is declared. */
export const hasTable = ({ namespace, table }: Target, findNamespace: FindNamespace): boolean =>
  findNamespace(namespace)?.tables.has(table) === true

export const formatChannel = ({ namespace, instanceId, table, docId }: Target): string =>
  [prefix, namespace, ...(instanceId === null ? [] : [instanceId]), table, ...(docId === null ? [] : [docId])].join(':')

/**
 * `dblive:{namespace}[:{instanceId}]:{table}[:{docId}]`; the namespace says whether there is an instance. Null for a
 * text that is not a channel of a declared namespace. No part contains a colon or is empty, so parsing is unambiguous.
 */
export function findTarget(channel: string, findNamespace: FindNamespace): Target | null {
  if (channel.length > channelCharsMax) return null
  const [first, namespace = '', ...parts] = channel.split(':')
  const definition = findNamespace(namespace)
  if (first !== prefix || !definition || parts.some((part) => part === '')) return null
  const instanceId = definition.instance ? (parts.shift() ?? '') : null
  const [table, docId = null, ...rest] = parts
  if (table === undefined || instanceId === '' || rest.length > 0) return null
  return { namespace, instanceId, table, docId }
}

/**
 * The channel without its tag, `#` and 1 to 32 letters, digits, `_` or `-`. With different tags, a socket subscribes to
 * one table several times; subscriptions with the same tag and filters share one query.
 */
export const withoutTag = (channel: string): string => channel.replace(/#[\w-]{1,32}$/, '')

/** The query of `/subscribe` and `/connect-check`: a channel, or its parts. */
export interface ChannelQuery {
  readonly channel?: string | undefined
  readonly namespace?: string | undefined
  readonly table?: string | undefined
  readonly instanceId?: string | undefined
  readonly docId?: string | undefined
}

/** Whether a query names a channel, completely or in part. */
export const namesChannel = ({ channel, namespace, table, instanceId, docId }: ChannelQuery): boolean =>
  [channel, namespace, table, instanceId, docId].some((part) => part !== undefined)

const partPattern = /^[^:]+$/

/** The channel of a query. Throws 400 where a part is missing or would not be parsed as the same channel. */
export function parseChannelQuery(query: ChannelQuery, findNamespace: FindNamespace): string {
  if (query.channel !== undefined) return query.channel
  for (const name of ['namespace', 'table'] as const)
    if (query[name] === undefined) throw invalidField(name, 'required', 'is required without a channel')
  for (const name of ['namespace', 'table', 'instanceId', 'docId'] as const)
    if (query[name] !== undefined && !partPattern.test(query[name]))
      throw invalidField(name, 'pattern', 'must not be empty or contain a colon')
  const { namespace = '', table = '', instanceId = null, docId = null } = query
  // With a superfluous instance, or without a required one, the parts would form another channel.
  const isDynamic = findNamespace(namespace)?.instance
  if (isDynamic !== undefined && isDynamic !== (instanceId !== null))
    throw isDynamic
      ? invalidField('instanceId', 'required', 'is required in a dynamic namespace')
      : invalidField('instanceId', 'unknown', 'is not allowed in a static namespace')
  return formatChannel({ namespace, table, instanceId, docId })
}
