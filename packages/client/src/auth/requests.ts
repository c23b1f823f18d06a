/** Requests under `/api/auth`. */
import type { Core } from '../core/core.ts'

interface Sender {
  readonly core: Core
}

/** A request as the signed-in user. An answer that only confirms is undefined. */
export const asUser = async <Data = void>(
  sender: Sender,
  method: string,
  path: string,
  body?: object,
  token?: null | undefined,
): Promise<Data> => {
  const data = await sender.core.json<{ ok?: true }>(method, `/api/auth/${path}`, { body, token })
  return (data?.ok ? undefined : data) as Data
}

/** A request without credentials. */
export const publicly = <Data = void>(sender: Sender, path: string, body: object): Promise<Data> =>
  asUser(sender, 'POST', path, body, null)
