/** The profile of a user as a form. What was typed stays when the request fails. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/code-block.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Checkbox, TextField } from '../../design/field.tsx'
import { formatTime } from '../../design/format-time.ts'
import { Card, Facts } from '../../design/page.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type User, updateUser, useUserChange } from './requests.ts'

interface Draft {
  readonly displayName: string
  readonly email: string
  readonly role: string
  readonly emailVerified: boolean
}

const draftOf = ({ displayName, email, role, emailVerified }: User): Draft => ({
  displayName: displayName ?? '',
  email: email ?? '',
  role,
  emailVerified,
})

/** The fields that differ, as the API takes them. */
function changesOf(user: User, draft: Draft): object {
  const before = draftOf(user)
  return {
    ...(draft.displayName === before.displayName ? {} : { displayName: draft.displayName || null }),
    ...(draft.email === before.email ? {} : { email: draft.email }),
    ...(draft.role === before.role ? {} : { role: draft.role }),
    ...(draft.emailVerified === before.emailVerified ? {} : { emailVerified: draft.emailVerified }),
  }
}

export function ProfileCard({ user, mayChange }: { readonly user: User; readonly mayChange: boolean }) {
  const toasts = useToasts()
  /** Null while it shows what is stored. */
  const [edited, setEdited] = useState<Draft | null>(null)
  const draft = edited ?? draftOf(user)
  const set = (change: Partial<Draft>): void => setEdited({ ...draft, ...change })
  const save = useUserChange((changes: object) => updateUser(user.id, changes))
  const isChanged = Object.keys(changesOf(user, draft)).length > 0

  function submit(event: FormEvent): void {
    event.preventDefault()
    save.mutate(changesOf(user, draft), {
      onSuccess: () => {
        setEdited(null)
        toasts.add({ title: 'Profile saved', tone: 'good' })
      },
    })
  }
  return (
    <Card title="Profile">
      <form className="stack" onSubmit={submit}>
        <TextField
          label="Display name"
          value={draft.displayName}
          maxLength={100}
          disabled={!mayChange}
          onChange={(event) => set({ displayName: event.target.value })}
        />
        <TextField
          label="Email"
          type="email"
          value={draft.email}
          maxLength={320}
          disabled={!mayChange}
          onChange={(event) => set({ email: event.target.value })}
        />
        <Checkbox
          label="The user has proved to own this address"
          checked={draft.emailVerified}
          disabled={!mayChange || draft.email === ''}
          onChange={(emailVerified) => set({ emailVerified })}
        />
        <TextField
          label="Role"
          value={draft.role}
          maxLength={64}
          required
          disabled={!mayChange}
          hint="Your rules read it as auth.role."
          onChange={(event) => set({ role: event.target.value })}
        />
        {save.error !== null && <ErrorNote error={save.error} />}
        {isChanged && (
          <div className="button-row">
            <Button onClick={() => setEdited(null)}>Discard</Button>
            <Button type="submit" kind="primary" isBusy={save.isPending}>
              Save
            </Button>
          </div>
        )}
      </form>
      <Facts
        facts={[
          [
            'Id',
            <span key="id" className="users-copied">
              <code>{user.id}</code>
              <CopyButton text={user.id} label="Copy the id" />
            </span>,
          ],
          ['Created', formatTime(user.createdAt)],
          ['Changed', formatTime(user.updatedAt)],
          ['Locale', user.locale ?? '—'],
        ]}
      />
    </Card>
  )
}
