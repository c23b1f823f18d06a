/** The room that all competitors run: players move, and all players receive all positions. */

/** Seats of a room. */
export const playersMax = 100
/** Interval of deltas of all competitors. */
export const deltaIntervalMs = 50
