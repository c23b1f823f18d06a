/** The parts and the sizes of the subscription bench. */

import type { Plan } from '../setup/measure.ts'
import type { MatchingKind } from './matching.ts'

export const livePartNames = ['fan-out', 'latency', 'slow', 'rules', 'idle', 'matching'] as const
export type LivePart = (typeof livePartNames)[number]

export interface LivePlan {
  readonly parts: readonly LivePart[]
  readonly rounds: number
  readonly round: { readonly warmupSeconds: number; readonly seconds: number }
  /** Numbers of subscribers of the fan-out. */
  readonly subscribers: readonly number[]
  /** Fixed write rates of the latency part, far below capacity. */
  readonly paced: readonly { readonly subscribers: number; readonly perSecond: number }[]
  readonly slow: { readonly subscribers: number; readonly perSecond: number }
  /** Subscribers are distributed evenly over the users. */
  readonly rules: { readonly users: number; readonly subscribers: number }
  readonly idle: { readonly sockets: number; readonly idleSeconds: number }
  readonly matching: readonly { readonly kind: MatchingKind; readonly subscriptions: number }[]
}

const sizes = (kind: MatchingKind, ...all: number[]) => all.map((subscriptions) => ({ kind, subscriptions }))

const full = {
  subscribers: [1, 1000, 5000],
  paced: [
    { subscribers: 1, perSecond: 200 },
    { subscribers: 1000, perSecond: 20 },
  ],
  slow: { subscribers: 1000, perSecond: 20 },
  rules: { users: 100, subscribers: 5000 },
  // Longer than the ping interval of the server.
  idle: { sockets: 10_000, idleSeconds: 12 },
  matching: [
    ...sizes('equality', 1000, 10_000, 100_000),
    ...sizes('rule', 1000, 10_000, 100_000),
    ...sizes('order', 1000, 10_000),
  ],
}

const quick: typeof full = {
  subscribers: [1, 1000],
  paced: full.paced,
  slow: full.slow,
  rules: { users: 20, subscribers: 1000 },
  idle: { sockets: 1000, idleSeconds: 2 },
  matching: [...sizes('equality', 1000, 10_000), ...sizes('rule', 1000, 10_000), ...sizes('order', 1000)],
}

export const livePlan = (parts: readonly LivePart[], { rounds, ...round }: Plan, isQuick: boolean): LivePlan => ({
  parts,
  rounds,
  round,
  ...(isQuick ? quick : full),
})
