/** Signs a user in as a guest, or with an email address and a password. */
import { isPlinthError } from 'plinth-client'
import { type FormEvent, useState } from 'react'
import { plinth } from './plinth'

export function SignIn() {
  const [isNew, setNew] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState('')

  async function run(signIn: () => Promise<unknown>) {
    setBusy(true)
    setError('')
    try {
      await signIn()
    } catch (failure) {
      if (!isPlinthError(failure)) throw failure
      setError(failure.slug === 'network' ? 'The server cannot be reached. Is it running?' : failure.message)
      setBusy(false)
    }
  }

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const credentials = { email: String(form.get('email')), password: String(form.get('password')) }
    void run(() => (isNew ? plinth.auth.signUp(credentials) : plinth.auth.signIn(credentials)))
  }

  return (
    <main className="sign-in">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h1>Tasks</h1>
      <p className="muted">A shared list that updates live in every window.</p>
      <button
        type="button"
        className="primary"
        disabled={isBusy}
        onClick={() => run(() => plinth.auth.signInAnonymously())}
      >
        Continue as guest
      </button>
      <div className="divider">or</div>
      <form onSubmit={submit}>
        <label className="field">
          Email
          <input name="email" type="email" autoComplete="email" required />
        </label>
        <label className="field">
          Password
          <input
            name="password"
            type="password"
            autoComplete={isNew ? 'new-password' : 'current-password'}
            minLength={8}
            required
          />
        </label>
        {error && (
          <p role="alert" className="error">
            {error}
          </p>
        )}
        <button type="submit" disabled={isBusy}>
          {isNew ? 'Create account' : 'Sign in'}
        </button>
      </form>
      <button type="button" className="link" onClick={() => setNew(!isNew)}>
        {isNew ? 'I have an account' : 'Create an account'}
      </button>
    </main>
  )
}
