/** When the runtime collects garbage, beside the times that it chooses itself. */

/** Takes some 10 ms during a start. */
export const collectGarbage = (): void => Bun.gc(true)
