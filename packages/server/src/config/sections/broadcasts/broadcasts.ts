/**
 * The section `broadcasts`: channels that belong to no table, such as typing indicators, each name or prefix with its
 * rules.
 */
import { z } from 'zod'
import { broadcastNameCharsMax } from '../../../limits/subscriptions.ts'
import type { ConfigIssue } from '../../issues.ts'
import { isAsynchronous, isFunction, membersOf, strictObject } from '../../shape-parts.ts'
import type { BroadcastRule } from './define-broadcasts.ts'

/** Channels of one name, or of all names with one prefix. */
export interface BroadcastDefinition {
  /** The name, or the prefix without its `*`. */
  readonly name: string
  readonly isPrefix: boolean
  readonly subscribe: BroadcastRule
  readonly publish: BroadcastRule
}

const ruleShape = z
  .custom<BroadcastRule>(
    (value) => typeof value === 'boolean' || isFunction(value),
    'must be true, false or a function',
  )
  .refine((value) => !isAsynchronous(value), 'must not be asynchronous')
  .default(false)

const broadcastShape = strictObject({ subscribe: ruleShape, publish: ruleShape })

export const broadcastsShape = z.record(z.string(), broadcastShape)
export type WrittenBroadcasts = z.output<typeof broadcastsShape>

/** Printable, without spaces: what a channel's name may hold. */
export const broadcastNamePattern = /^[^\s\p{C}]+$/u

/** What is wrong with the section beyond its shape. */
export function checkBroadcasts(written: unknown): ConfigIssue[] {
  return membersOf(written).flatMap(([name]): ConfigIssue[] => {
    const path = ['broadcasts', name]
    if (name.length > broadcastNameCharsMax)
      return [{ path, message: `must have at most ${broadcastNameCharsMax} characters` }]
    if (!broadcastNamePattern.test(name)) return [{ path, message: 'must be printable, without spaces' }]
    return name.slice(0, -1).includes('*') ? [{ path, message: 'may hold "*" only at its end' }] : []
  })
}

/** Exact names first, then prefixes, the longest first: the first that fits a name decides. */
export const createBroadcasts = (written: WrittenBroadcasts): readonly BroadcastDefinition[] =>
  Object.freeze(
    Object.entries(written)
      .map(([key, { subscribe, publish }]): BroadcastDefinition => {
        const isPrefix = key.endsWith('*')
        return Object.freeze({ name: isPrefix ? key.slice(0, -1) : key, isPrefix, subscribe, publish })
      })
      .sort((a, b) => Number(a.isPrefix) - Number(b.isPrefix) || b.name.length - a.name.length),
  )
