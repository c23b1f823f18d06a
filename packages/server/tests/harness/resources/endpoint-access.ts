/** Access to an endpoint, as declared in the endpoint matrix. */
import type { Answer, Client } from '../client.ts'

/**
 * `public`: any caller. `rules`: an access rule decides, here one that denies. `service`: service keys only. `key`:
 * service keys only, and a signed-in user gets 403. `owner`: the user who created the resource, which does not exist
 * here. `user`: a signed-in user, for their own account; service keys are refused.
 */
export interface Access {
  readonly kind: 'public' | 'rules' | 'service' | 'key' | 'owner' | 'user'
  /** Scope that admits a limited key; null where any key will do. */
  readonly scope: string | null
  /** Sends one request to the endpoint; `base` is the path of the table for endpoints of records. */
  readonly send: (client: Client, base: string) => Promise<Answer>
  readonly changes?: true
  /** An authorized request with an empty body fails validation with 400. */
  readonly isJudgedByBody?: true
}

export const anyone = { kind: 'public', scope: null } as const

/** An endpoint whose empty body fails validation once access is granted. */
export const judged = (method: string, path: string) =>
  ({
    isJudgedByBody: true,
    send: (client: Client) => client.request(method, path, method === 'GET' ? {} : { body: {} }),
  }) as const
