/** Table-driven tests of requests and their expected responses. A refused request must change nothing. */
import { expect, test } from 'bun:test'
import { type HeaderList, query } from '../client.ts'
import { expectRefusal } from '../refusal.ts'
import type { TestServer } from '../server.ts'
import type { UserClaims } from '../users/tokens.ts'

export interface Scenario {
  /** Starts with the rules that it tests: `[DB-LIST-3] …`. */
  readonly name: string
  /** `service`, or a user id; anonymous by default. */
  readonly as?: 'service' | UserClaims | undefined
  /** Default GET. */
  readonly method?: string
  readonly path: string
  readonly query?: Readonly<Record<string, unknown>>
  readonly headers?: HeaderList
  readonly body?: unknown
  readonly status: number
  /** A subset of the response: objects may have further members, arrays are exact. */
  readonly json?: unknown
  /** The ids of `items`, in order. */
  readonly ids?: readonly string[]
  /** The text that the error must contain. */
  readonly names?: string
  /** The codes of the error by member of `data`; exactly these. */
  readonly data?: Readonly<Record<string, string>>
  readonly lacks?: readonly string[]
}

/** `watched`: the tables that a refused scenario must not change. */
export function runScenarios(server: TestServer, watched: readonly string[], scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios)
    test(scenario.name, async () => {
      const refused = scenario.status >= 400
      const before = refused ? await server.dump(...watched) : undefined
      const { as, method = 'GET', path, query: params, headers, body } = scenario
      const client = as === undefined ? server.anonymous : as === 'service' ? server.service : server.as(as)
      const options = { ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) }
      const answer = await client.request(method, path + (params ? query(params) : ''), options)
      if (refused) expectRefusal(answer, scenario.status, scenario.names)
      else if (answer.status !== scenario.status)
        throw new Error(`expected ${scenario.status}, got ${answer.status}: ${answer.text.slice(0, 500)}`)
      // Bun's toMatchObject modifies the compared object.
      if (scenario.json !== undefined) expect(structuredClone(answer.body)).toMatchObject(scenario.json as object)
      if (scenario.ids) expect(answer.body.items.map(({ id }: { id: string }) => id)).toEqual([...scenario.ids])
      if (scenario.data) expect(codesOf(answer.body.data)).toEqual(scenario.data)
      for (const text of scenario.lacks ?? []) expect(answer.text).not.toContain(text)
      if (before) expect(await server.dump(...watched)).toEqual(before)
    })
}

/** The codes in the `data` of an error, by field. */
export const codesOf = (data: Readonly<Record<string, { code: string }>> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(data ?? {}).map(([field, { code }]) => [field, code]))
