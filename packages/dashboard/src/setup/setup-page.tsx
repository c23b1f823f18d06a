/**
 * The page of the set-up link: creates the first administrator and continues in the dashboard. The token is in the
 * fragment of the link, which browsers never send.
 */
import { createClient, isPlinthError } from 'plinth-client'
import { type FormEvent, useEffect, useState } from 'react'
import { type SecondFactor, signInByPassword } from '../app/session-requests.ts'
import { session } from '../app/session-store.ts'
import { CodeForm, EntryPage } from '../app/sign-in.tsx'
import { useStore } from '../app/store.ts'
import { Button } from '../design/button.tsx'
import { ErrorNote } from '../design/error-note.tsx'
import { TextField } from '../design/field.tsx'

/** Of the API, without a session. */
const client = createClient(location.origin, [], { storage: { get: () => null, set() {}, remove() {} } })

/** Removes the token from the address, and so from the history and from bookmarks. */
export function takeSetupToken(): string {
  const token = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
  return token
}

const messageOf = (error: unknown): unknown =>
  isPlinthError(error) && error.status === 401
    ? new Error('The link was used, has expired, or is no longer needed. Restart the server to get another one.')
    : error

export function SetupPage({ token }: { readonly token: string }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [factor, setFactor] = useState<SecondFactor | null>(null)
  const current = useStore(session.current)
  useEffect(() => {
    if (current) location.replace('/dashboard')
  }, [current])
  const errorOf = (name: string): string | null => {
    const data = isPlinthError(error) ? (error.data as Record<string, { message?: string }> | undefined) : undefined
    return data?.[name]?.message ?? null
  }
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await client.request('POST', '/api/auth/setup', { body: { token, email: email.trim(), password } })
      const required = await signInByPassword(email.trim(), password)
      if (required === null) location.replace('/dashboard')
      else setFactor(required)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <EntryPage title="Welcome to Plinth" text="Create the first administrator of this server.">
      {factor !== null ? (
        <CodeForm factor={factor} onBack={() => setFactor(null)} />
      ) : token === '' ? (
        <ErrorNote error={new Error('This address is not complete. Open the set-up link that the server printed.')} />
      ) : (
        <form className="stack" onSubmit={(event) => void submit(event)}>
          <TextField
            label="Email"
            className="input-large"
            type="email"
            name="email"
            autoComplete="username"
            required
            autoFocus
            value={email}
            error={errorOf('email')}
            onChange={(event) => setEmail(event.target.value)}
          />
          <TextField
            label="Password"
            hint="At least 8 characters; a sentence is better than a word."
            className="input-large"
            type="password"
            name="password"
            autoComplete="new-password"
            minLength={8}
            required
            value={password}
            error={errorOf('password')}
            onChange={(event) => setPassword(event.target.value)}
          />
          {error !== null && <ErrorNote error={messageOf(error)} />}
          <Button type="submit" kind="primary" size="large" isBusy={isBusy}>
            Create administrator
          </Button>
        </form>
      )}
    </EntryPage>
  )
}
