/** Creates a user with a password, or invites one by mail. */
import { type FormEvent, useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../design/button.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Switch, TextField } from '../../design/field.tsx'
import { useToasts } from '../../design/toast.tsx'
import { createUser, useUserChange } from './requests.ts'

export function NewUserDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="New user" size="small" isSticky>
      <NewUserForm onClose={onClose} />
    </Dialog>
  )
}

const textOf = (form: FormData, name: string): string => String(form.get(name) ?? '').trim()

/** Mounted for as long as the dialog is open, so that each opening begins empty. */
function NewUserForm({ onClose }: { readonly onClose: () => void }) {
  const [, navigate] = useLocation()
  const toasts = useToasts()
  const [isInvited, setInvited] = useState(true)
  const change = useUserChange(createUser)

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const displayName = textOf(form, 'displayName')
    const role = textOf(form, 'role')
    const email = textOf(form, 'email')
    const { user } = await change.mutateAsync({
      email,
      ...(displayName === '' ? {} : { displayName }),
      ...(role === '' ? {} : { role }),
      ...(isInvited ? {} : { password: String(form.get('password')) }),
    })
    toasts.add({ title: isInvited ? `Invitation sent to ${email}` : 'User created', tone: 'good' })
    navigate(`/users/${encodeURIComponent(user.id)}`)
  }
  return (
    // The mutation keeps the error, which is shown below.
    <form className="stack" onSubmit={(event) => void submit(event).catch(() => undefined)}>
      <TextField label="Email" name="email" type="email" required maxLength={320} autoComplete="off" />
      <TextField label="Display name" name="displayName" maxLength={100} autoComplete="off" />
      <TextField
        label="Role"
        name="role"
        placeholder="user"
        maxLength={64}
        autoComplete="off"
        hint="Your rules read it as auth.role."
      />
      <Switch label="Send an invitation to choose a password" checked={isInvited} onChange={setInvited} />
      {!isInvited && (
        <TextField label="Password" name="password" type="password" required autoComplete="new-password" />
      )}
      {change.error !== null && <ErrorNote error={change.error} />}
      <div className="button-row">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" isBusy={change.isPending}>
          {isInvited ? 'Invite' : 'Create'}
        </Button>
      </div>
    </form>
  )
}
