/** What the rooms bench measures, and how much of it. */
import type { Plan } from '../setup/measure.ts'

export interface RoomsPlan extends Plan {
  /** Full rooms are added until they are too many, and no more than these. */
  readonly fullRoomsMax: number
  /** Rates are actions of a player a second, the highest first; one that is kept ends the search. */
  readonly many: { readonly rooms: number; readonly players: number; readonly rates: readonly number[] }
  /** Full rooms and rooms with a single player, all idle. */
  readonly idle: { readonly full: number; readonly single: number }
  readonly hibernated: { readonly rooms: number; readonly revived: number }
}

/** What a player of a full room does in a second (issue 7). */
export const actionsPerSecond = 10
/** What the answers to all but one in a hundred actions have to keep. */
export const answerBudgetMs = 50

const full = {
  fullRoomsMax: 32,
  many: { rooms: 100, players: 20, rates: [10, 5, 2] },
  idle: { full: 10, single: 1000 },
  hibernated: { rooms: 10_000, revived: 1000 },
}

const quick: typeof full = {
  fullRoomsMax: 4,
  many: { rooms: 20, players: 20, rates: [10, 2] },
  idle: { full: 3, single: 300 },
  hibernated: { rooms: 500, revived: 100 },
}

export const roomsPlan = (plan: Plan, isQuick: boolean): RoomsPlan => ({ ...plan, ...(isQuick ? quick : full) })
