/** Linking of providers to a user. */
import type { SessionKeeper, User } from './session.ts'

/** Completes the linking of a provider. */
export async function link(keeper: SessionKeeper, linkTicket: string | undefined): Promise<object> {
  type Linked = { identity: object; user: User }
  const { identity, user } = await keeper.asUser<Linked>('POST', 'identities', { linkTicket })
  await keeper.setUser(user)
  return identity
}
