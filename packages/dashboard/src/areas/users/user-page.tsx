/** One user: profile, ways to sign in, sessions, claims and metadata, and what an administrator can do. */
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useSchema } from '../../app/queries.ts'
import { startViewing } from '../../app/session-requests.ts'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Icon } from '../../design/icons.tsx'
import { Menu } from '../../design/menu.tsx'
import { Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { SessionsCard, SignInCard } from './credentials.tsx'
import { DashboardRoleCard } from './dashboard-role.tsx'
import { FilesCard } from './files-card.tsx'
import { JsonCard } from './json-card.tsx'
import { ProfileCard } from './profile.tsx'
import { endSessions, setClaims, type User, updateUser, useUser, useUserChange, useUserDeletion } from './requests.ts'
import { nameOf, UserBadges } from './user-badges.tsx'

export function UserPage({ id }: { readonly id: string }) {
  const { data: user, error, refetch } = useUser(id)
  const permits = usePermits()
  const hasBuckets = (useSchema().data?.buckets.length ?? 0) > 0
  const mayChange = permits('auth:admin:*:write')
  const back = (
    <Link href="/users" className="users-back">
      <Icon name="chevron-left" /> Users
    </Link>
  )
  if (user === undefined)
    return (
      <Page title="User" description={back}>
        {error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} onRetry={() => void refetch()} />}
      </Page>
    )
  return (
    <Page
      title={nameOf(user)}
      description={back}
      actions={
        <>
          {permits('dashboard:users:*:impersonate') && !user.disabled && <ViewAsButton user={user} />}
          {mayChange && <UserActions user={user} />}
        </>
      }
    >
      <UserBadges user={user} />
      <div className="users-grid">
        <ProfileCard user={user} mayChange={mayChange} />
        <SignInCard user={user} mayChange={mayChange} />
        <SessionsCard user={user} mayChange={mayChange} />
        {hasBuckets && permits('storage:bucket:*:read') && <FilesCard user={user} />}
        <JsonCard
          title="Claims"
          hint="In each access token as auth.custom, from the next refresh on. Your rules read them."
          value={user.customClaims}
          onSave={mayChange ? (claims) => setClaims(id, claims) : null}
        />
        <JsonCard
          title="Metadata"
          hint="The user can read and change it."
          value={user.metadata}
          onSave={mayChange ? (metadata) => updateUser(id, { metadata }) : null}
        />
        <JsonCard
          title="Application metadata"
          hint="Only administrators and service keys see it."
          value={user.appMetadata}
          onSave={mayChange ? (appMetadata) => updateUser(id, { appMetadata }) : null}
        />
        {permits('dashboard:admins:*:read') && (
          <DashboardRoleCard user={user} mayChange={permits('dashboard:admins:*:write')} />
        )}
      </div>
    </Page>
  )
}

/** Shows data and files as the user sees them, for half an hour. */
function ViewAsButton({ user }: { readonly user: User }) {
  const [, navigate] = useLocation()
  const toasts = useToasts()
  const [isBusy, setBusy] = useState(false)
  const start = async (): Promise<void> => {
    setBusy(true)
    try {
      await startViewing(user.id)
      navigate('/data')
    } catch (error) {
      setBusy(false)
      toasts.fail('The view was not started', error)
    }
  }
  return (
    <Button icon="eye" isBusy={isBusy} onClick={() => void start()}>
      View as user
    </Button>
  )
}

function UserActions({ user }: { readonly user: User }) {
  const [, navigate] = useLocation()
  const toasts = useToasts()
  const [isDeleting, setDeleting] = useState(false)
  const disable = useUserChange((disabled: boolean) => updateUser(user.id, { disabled }))
  const signOut = useUserChange(() => endSessions(user.id))
  const remove = useUserDeletion(user.id, () => {
    toasts.add({ title: 'User deleted', tone: 'good' })
    navigate('/users')
  })

  const setDisabled = (disabled: boolean): void => {
    disable.mutate(disabled, {
      onSuccess: () =>
        toasts.add({
          title: disabled ? 'User disabled' : 'User enabled',
          ...(disabled ? { text: 'Every session of the user has ended.' } : {}),
          tone: 'good',
          action: { label: 'Undo', run: () => setDisabled(!disabled) },
        }),
      onError: (error) => toasts.fail('The user was not changed', error),
    })
  }
  return (
    <>
      <Button isBusy={disable.isPending} onClick={() => setDisabled(!user.disabled)}>
        {user.disabled ? 'Enable' : 'Disable'}
      </Button>
      <Menu
        align="end"
        trigger={
          <Button icon="more" aria-label="More actions">
            More
          </Button>
        }
        actions={[
          {
            label: 'Sign out everywhere',
            icon: 'sign-out',
            run: () =>
              signOut.mutate(undefined, {
                onSuccess: () => toasts.add({ title: 'Every session of the user has ended', tone: 'good' }),
                onError: (error) => toasts.fail('The sessions were not ended', error),
              }),
          },
          null,
          { label: 'Delete user…', icon: 'trash', isDangerous: true, run: () => setDeleting(true) },
        ]}
      />
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title="Delete this user?"
        action="Delete user"
        phrase={user.email ?? user.id}
        onConfirm={remove}
      >
        Sessions, identities, passkeys, second factors and the public record are deleted too. Records that the user has
        written stay. This cannot be undone.
      </ConfirmDialog>
    </>
  )
}
