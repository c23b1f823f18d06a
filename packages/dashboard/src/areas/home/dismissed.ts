/** Which advice an administrator has hidden, and for how long. Without React, so that tests call it. */
import type { Advice, Dismissed } from './requests.ts'

/** How long an advice stays hidden, in days. */
export const dismissedDays = 7

const dayMs = 24 * 60 * 60 * 1000

const isDismissed = (dismissed: Dismissed, id: string, nowMs: number): boolean => {
  const until = dismissed[id]
  return until !== undefined && Date.parse(until) > nowMs
}

export const shownAdvice = (items: readonly Advice[], dismissed: Dismissed, nowMs: number): readonly Advice[] =>
  items.filter(({ id }) => !isDismissed(dismissed, id, nowMs))

/** With one more; those that are over are forgotten, so that the view stays small. */
export const withDismissed = (dismissed: Dismissed, id: string, nowMs: number): Dismissed => ({
  ...Object.fromEntries(Object.entries(dismissed).filter(([one]) => isDismissed(dismissed, one, nowMs))),
  [id]: new Date(nowMs + dismissedDays * dayMs).toISOString(),
})
