/** Sizes of the rooms benchmark. */
import type { Plan } from '../setup/measure.ts'

export interface RoomsPlan extends Plan {
  /** The most full rooms that the search for the capacity tries. */
  readonly fullRoomsMax: number
  /** How long each competitor plays before it is compared: compilers of the runtime work until then. */
  readonly steadySeconds: number
  /** Rates are actions per player and second, highest first. The first sustained rate ends the search. */
  readonly many: { readonly rooms: number; readonly players: number; readonly rates: readonly number[] }
  /** Full rooms and rooms with a single player, all idle. */
  readonly idle: { readonly full: number; readonly single: number }
  readonly hibernated: { readonly rooms: number; readonly revived: number }
}

/** Actions per second of a player in a full room. */
export const actionsPerSecond = 10
/** Maximum p99 latency of a sustained load, besides the interval of deltas where answers are sent with them. */
export const answerBudgetMs = 50

const full = {
  fullRoomsMax: 32,
  steadySeconds: 5,
  many: { rooms: 100, players: 20, rates: [10, 5, 2] },
  idle: { full: 10, single: 1000 },
  hibernated: { rooms: 10_000, revived: 1000 },
}

const quick: typeof full = {
  fullRoomsMax: 4,
  steadySeconds: 0.3,
  many: { rooms: 20, players: 20, rates: [10, 2] },
  idle: { full: 3, single: 300 },
  hibernated: { rooms: 500, revived: 100 },
}

export const roomsPlan = (plan: Plan, isQuick: boolean): RoomsPlan => ({ ...plan, ...(isQuick ? quick : full) })
