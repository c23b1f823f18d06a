/** Who may ask an endpoint, as the matrix of endpoints says it of each. */
import type { Answer, Client } from '../client.ts'

/**
 * `public`: anyone. `rules`: an access rule decides, here one that denies. `service`: the service key only; `key`: the
 * same, and 403 to whoever brings none. `owner`: whoever began what is asked about, which here is nobody. `user`: who
 * is signed in, about themselves, so no service key either.
 */
export interface Access {
  readonly kind: 'public' | 'rules' | 'service' | 'key' | 'owner' | 'user'
  /** Scope that admits a limited key; null where any key will do. */
  readonly scope: string | null
  /** One request to it, for a table's base where it has one. */
  readonly ask: (client: Client, base: string) => Promise<Answer>
  readonly changes?: true
  /** The body decides: an empty one comes as far as being refused for itself, with 400. */
  readonly isJudgedByBody?: true
}

export const anyone = { kind: 'public', scope: null } as const

/** Only as far as its body is looked at. */
export const judged = (method: string, path: string) =>
  ({
    isJudgedByBody: true,
    ask: (client: Client) => client.request(method, path, method === 'GET' ? {} : { body: {} }),
  }) as const
