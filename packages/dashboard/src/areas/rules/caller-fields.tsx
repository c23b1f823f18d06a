/** The caller: anonymous, a user as stored, or a user with pasted claims. */
import { useState } from 'react'
import { usePermits } from '../../app/permissions.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch, TextField } from '../../design/field.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { JsonField } from './json-field.tsx'
import type { CallerKind, Draft } from './question.ts'
import { type FoundUser, useFoundUsers, useUserName } from './requests.ts'
import { Segments } from './segments.tsx'

const kinds: readonly { readonly value: CallerKind; readonly label: string }[] = [
  { value: 'anonymous', label: 'Anonymous' },
  { value: 'user', label: 'User' },
  { value: 'claims', label: 'Claims' },
]

/** A caller as the form holds it. */
export type CallerDraft = Pick<Draft, 'caller' | 'userId' | 'claims'>

export interface CallerFieldsProps {
  readonly draft: CallerDraft
  readonly problem: string | null
  readonly onChange: (change: Partial<CallerDraft>) => void
}

export function CallerFields({ draft, problem, onChange }: CallerFieldsProps) {
  const permits = usePermits()
  const { caller, userId, claims } = draft
  return (
    <div className="rules-group">
      <Segments label="Caller" value={caller} options={kinds} onChange={(next) => onChange({ caller: next })} />
      {caller === 'user' && permits('auth:admin:*:read') && (
        <UserChoice userId={userId} onChoose={(id) => onChange({ userId: id })} />
      )}
      {caller === 'user' && !permits('auth:admin:*:read') && (
        <TextField
          label="User id"
          value={userId}
          maxLength={128}
          onChange={(event) => onChange({ userId: event.target.value.trim() })}
        />
      )}
      {caller === 'claims' && (
        <JsonField
          label="Properties of the caller"
          hint="id is required; role, email, emailVerified, displayName, isAnonymous and custom as your rules read them."
          placeholder={'{ "id": "ada", "custom": { "org": "acme" } }'}
          value={claims}
          problem={problem}
          onChange={(text) => onChange({ claims: text })}
        />
      )}
    </div>
  )
}

const nameOf = ({ displayName, email, id }: FoundUser): string => displayName || email || id

function UserChoice({ userId, onChoose }: { readonly userId: string; readonly onChoose: (id: string) => void }) {
  const [search, setSearch] = useState('')
  const { data, error, refetch } = useFoundUsers(search, userId === '')
  if (userId !== '') return <ChosenUser id={userId} onChange={() => onChoose('')} />
  return (
    <div className="rules-users">
      <DelayedSearch label="Email, name or id" initial={search} maxLength={320} onSearch={setSearch} />
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={2} />}
      {data?.users.length === 0 && <p className="field-note">No user found.</p>}
      <ul aria-label="Users found">
        {data?.users.map((user) => (
          <li key={user.id}>
            <button type="button" className="rules-user" onClick={() => onChoose(user.id)}>
              <UserLine user={user} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}

const UserLine = ({ user }: { readonly user: FoundUser }) => (
  <span className="rules-user-text">
    <strong>{nameOf(user)}</strong>
    <span>{user.email !== null && user.displayName ? user.email : user.id}</span>
    {user.disabled && <Badge tone="bad">Disabled</Badge>}
  </span>
)

function ChosenUser({ id, onChange }: { readonly id: string; readonly onChange: () => void }) {
  const { data } = useUserName(id, true)
  return (
    <div className="rules-chosen">
      <UserLine user={data ?? { id, email: null, displayName: null, disabled: false }} />
      <Button size="small" onClick={onChange}>
        Change
      </Button>
    </div>
  )
}
