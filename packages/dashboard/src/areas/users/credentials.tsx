/** How a user signs in, and where the user is signed in. */
import { useState } from 'react'
import { Badge } from '../../design/badge.tsx'
import { Button, IconButton } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatAge, formatDevice, formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type Credentials, endSession, removeFactors, type User, useCredentials, useUserChange } from './requests.ts'

interface Props {
  readonly user: User
  readonly mayChange: boolean
}

export function SignInCard({ user, mayChange }: Props) {
  const { data, error, refetch } = useCredentials(user.id)
  const [isRemoving, setRemoving] = useState(false)
  const toasts = useToasts()
  const remove = useUserChange(() => removeFactors(user.id))
  return (
    <Card title="Ways to sign in">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data !== undefined && (
        <ul className="users-ways">
          <Way name="Password" note={data.hasPassword ? 'Set' : 'Not set'} isActive={data.hasPassword} />
          {data.identities.map(({ id, provider, email, createdAt }) => (
            <Way key={id} name={provider} note={`${email ?? 'no address'} · linked ${formatAge(createdAt)}`} isActive />
          ))}
          {data.passkeys.map(({ id, name, lastUsedAt }) => (
            <Way
              key={id}
              name={`Passkey “${name}”`}
              note={lastUsedAt ? `used ${formatAge(lastUsedAt)}` : 'never used'}
              isActive
            />
          ))}
          <Way
            name="Second factor"
            note={factorNote(data)}
            isActive={data.factor !== null}
            action={
              mayChange &&
              data.factor !== null && (
                <Button size="small" onClick={() => setRemoving(true)}>
                  Remove…
                </Button>
              )
            }
          />
        </ul>
      )}
      <ConfirmDialog
        isOpen={isRemoving}
        onClose={() => setRemoving(false)}
        title="Remove the second factor?"
        action="Remove"
        onConfirm={async () => {
          await remove.mutateAsync()
          toasts.add({ title: 'Second factor removed', tone: 'good' })
        }}
      >
        The user signs in without a code until a new app is set up. Recovery codes stop working. Do this only after you
        have verified who asks for it.
      </ConfirmDialog>
    </Card>
  )
}

const factorNote = ({ factor, recoveryCodesLeft }: Credentials): string =>
  factor === null ? 'Not set up' : `Authenticator app · ${recoveryCodesLeft} recovery codes left`

function Way(props: {
  readonly name: string
  readonly note: string
  readonly isActive: boolean
  readonly action?: React.ReactNode
}) {
  return (
    <li>
      <span className="users-way">
        <strong>{props.name}</strong>
        <span>{props.note}</span>
      </span>
      {props.action}
      <Badge tone={props.isActive ? 'good' : 'neutral'}>{props.isActive ? 'On' : 'Off'}</Badge>
    </li>
  )
}

export function SessionsCard({ user, mayChange }: Props) {
  const { data, error, refetch } = useCredentials(user.id)
  const toasts = useToasts()
  const end = useUserChange((sessionId: string) => endSession(user.id, sessionId))
  return (
    <Card title="Sessions">
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data?.sessions.length === 0 && (
        <EmptyState icon="user" title="Not signed in anywhere">
          A session begins with each sign-in and ends thirty days after its last use.
        </EmptyState>
      )}
      <ul className="users-ways">
        {data?.sessions.map((session) => (
          <li key={session.id}>
            <span className="users-way" title={session.userAgent ?? undefined}>
              <strong>{formatDevice(session.userAgent)}</strong>
              <span title={formatTime(session.lastUsedAt)}>
                {session.address ?? 'unknown address'} · used {formatAge(session.lastUsedAt)}
              </span>
            </span>
            {mayChange && (
              <IconButton
                icon="close"
                label="End this session"
                size="small"
                disabled={end.isPending}
                onClick={() =>
                  end.mutate(session.id, {
                    onSuccess: () => toasts.add({ title: 'Session ended', tone: 'good' }),
                    onError: (failure) => toasts.fail('The session was not ended', failure),
                  })
                }
              />
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}
