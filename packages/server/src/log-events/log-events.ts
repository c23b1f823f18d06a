/**
 * Every event that the server logs: its level, its fields, what it means and what an operator should do about it. Names
 * and fields are stable, so that alerts can rely on them. `docs/reference/log-events.md` is generated from this list.
 */
import type { LogLevel } from './log-event.ts'
import { featureLogEvents } from './log-events-feature.ts'
import { jobLogEvents } from './log-events-jobs.ts'
import { serverLogEvents } from './log-events-server.ts'

export const logEvents = { ...featureLogEvents, ...jobLogEvents, ...serverLogEvents }

type LogEvents = typeof logEvents
export type LogEvent = keyof LogEvents

/** The events of one level. */
export type LogEventOf<Level extends LogLevel> = {
  [Event in LogEvent]: LogEvents[Event]['level'] extends Level ? Event : never
}[LogEvent]

type FieldOf<Event extends LogEvent> = LogEvents[Event]['fields'][number]
type OptionalField<Field> = Field extends `${infer Name}?` ? Name : never

/** The fields of an event; every one that is not optional must be given. */
export type LogEventFields<Event extends LogEvent> = Readonly<
  Record<Exclude<FieldOf<Event>, `${string}?`>, unknown> & Partial<Record<OptionalField<FieldOf<Event>>, unknown>>
>
