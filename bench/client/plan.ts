/** What the client bench measures, and how much of it. */
import type { Plan } from '../setup/measure.ts'

export const operations = [
  { name: 'get', title: 'Get' },
  { name: 'list', title: 'List of 30 with total' },
  { name: 'insert', title: 'Insert' },
] as const
export type Operation = (typeof operations)[number]['name']

/** Of a call: the client, or a bare `fetch` of the same request and `response.json()`. */
export type Caller = 'client' | 'fetch'
/** Of live lists: the client, or a bare socket whose messages are parsed and replace rows of an array. */
export type Follower = 'client' | 'socket'

/** Calls that one program has in flight. */
export const inFlight = [1, 16] as const

export const listCount = 10
export const rowsPerList = 1000

/** Changes of one request of the writer: below ten each is a message of its own, from ten on all are one message. */
export const changesPerRequest = [9, 500] as const

export interface ClientPlan extends Plan {
  /** Changes of a round of live lists, about. */
  readonly changes: number
}

export const clientPlan = (plan: Plan, isQuick: boolean): ClientPlan => ({ ...plan, changes: isQuick ? 2000 : 20_000 })
