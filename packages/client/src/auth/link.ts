/** Linking of providers to a user. */
import type { SessionKeeper } from './session.ts'

/** Completes the linking of a provider. */
export async function link(keeper: SessionKeeper, linkTicket: string | undefined): Promise<object> {
  return (await keeper.asUser<{ identity: object }>('POST', 'identities', { linkTicket })).identity
}
