/** The room that all competitors of the rooms bench run: players who move, and everybody sees where everybody is. */

/** Seats of a room. */
export const playersMax = 100
/** All send what has changed this often. */
export const deltaIntervalMs = 50
