/** The name and the state of a user. */
import { Badge } from '../../design/badge.tsx'
import type { ListedUser } from './requests.ts'

export const nameOf = ({ displayName, email, id }: Pick<ListedUser, 'displayName' | 'email' | 'id'>): string =>
  displayName || email || id

export function UserBadges({ user }: { readonly user: ListedUser }) {
  return (
    <span className="users-badges">
      {user.disabled ? (
        <Badge tone="bad" hasDot>
          Disabled
        </Badge>
      ) : (
        <Badge tone="good" hasDot>
          Active
        </Badge>
      )}
      {user.isAnonymous && <Badge>Anonymous</Badge>}
      {user.email !== null && !user.emailVerified && <Badge tone="warn">Unverified</Badge>}
    </span>
  )
}
