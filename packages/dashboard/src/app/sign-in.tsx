/**
 * Sign-in: password, then a code where the account has a second factor, or a passkey. On a page of its own, and over
 * the page when the session has ended in the middle of something.
 */
import { isPlinthError } from 'plinth-client'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from '../design/button.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ErrorNote } from '../design/error-note.tsx'
import { TextField } from '../design/field.tsx'
import { Logo } from '../design/icons.tsx'
import { EnrollFactor } from './enrollment/enroll-factor.tsx'
import {
  canUsePasskeys,
  type SecondFactor,
  signInByCode,
  signInByPasskey,
  signInByPassword,
} from './session-requests.ts'
import { session } from './session-store.ts'
import { useStore } from './store.ts'

/** One attempt at a time, with its error. */
function useAttempt() {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, error, setError, run }
}

const messageOf = (error: unknown): ReactNode => {
  if (isPlinthError(error, 'invalid-credentials')) return <ErrorNote error={new Error('Email or password is wrong.')} />
  if (isPlinthError(error, 'no-dashboard-role'))
    return (
      <ErrorNote
        error={
          new Error(
            'This account may not use the dashboard. An owner can give it a role under Settings, or with `plinth users set-dashboard-role`.',
          )
        }
      />
    )
  if (error instanceof DOMException) return <ErrorNote error={new Error('No passkey was used.')} />
  return <ErrorNote error={error} />
}

export interface SignInFormProps {
  /** Set where only this account may continue. */
  readonly email?: string | null
}

export function SignInForm({ email: fixedEmail }: SignInFormProps) {
  const [email, setEmail] = useState(fixedEmail ?? '')
  const [password, setPassword] = useState('')
  const [factor, setFactor] = useState<SecondFactor | null>(null)
  const { isBusy, error, setError, run } = useAttempt()

  if (factor !== null)
    return (
      <CodeForm
        factor={factor}
        onBack={() => {
          setFactor(null)
          setError(null)
        }}
      />
    )
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void run(async () => setFactor(await signInByPassword(email.trim(), password)))
  }
  return (
    <form className="stack" onSubmit={submit}>
      <TextField
        label="Email"
        className="input-large"
        type="email"
        name="email"
        autoComplete="username webauthn"
        required
        value={email}
        readOnly={Boolean(fixedEmail)}
        autoFocus={!fixedEmail}
        onChange={(event) => setEmail(event.target.value)}
      />
      <TextField
        label="Password"
        className="input-large"
        type="password"
        name="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      {error !== null && messageOf(error)}
      <Button type="submit" kind="primary" size="large" isBusy={isBusy}>
        Sign in
      </Button>
      {canUsePasskeys() && (
        <>
          <p className="or" aria-hidden="true">
            or
          </p>
          <Button size="large" icon="passkey" disabled={isBusy} onClick={() => void run(signInByPasskey)}>
            Sign in with a passkey
          </Button>
        </>
      )}
    </form>
  )
}

export function CodeForm({ factor, onBack }: { readonly factor: SecondFactor; readonly onBack: () => void }) {
  const [code, setCode] = useState('')
  const [isRecovery, setRecovery] = useState(false)
  const [isEnrolling, setEnrolling] = useState(factor.enrollmentRequired)
  const { isBusy, error, setError, run } = useAttempt()
  if (isEnrolling) return <EnrollFactor factor={factor} onReady={() => setEnrolling(false)} />
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    const text = code.trim()
    void run(() => signInByCode(factor, isRecovery ? { recoveryCode: text } : { code: text }))
  }
  return (
    <form className="stack" onSubmit={submit}>
      <TextField
        key={isRecovery ? 'recovery' : 'totp'}
        label={isRecovery ? 'Recovery code' : 'Code of your authenticator app'}
        hint={isRecovery ? 'Each code works once.' : 'Six digits. A new code appears every 30 seconds.'}
        className={isRecovery ? 'input-large' : 'input-large input-code'}
        name="code"
        inputMode={isRecovery ? 'text' : 'numeric'}
        autoComplete="one-time-code"
        spellCheck={false}
        required
        autoFocus
        value={code}
        onChange={(event) => setCode(event.target.value)}
      />
      {error !== null &&
        (isPlinthError(error, 'invalid-credentials') ? (
          <ErrorNote error={new Error('The code is wrong or was used before.')} />
        ) : (
          <ErrorNote error={error} />
        ))}
      <Button type="submit" kind="primary" size="large" isBusy={isBusy}>
        Continue
      </Button>
      <div className="sign-in-links">
        <Button kind="quiet" size="small" icon="chevron-left" onClick={onBack}>
          Back
        </Button>
        <Button
          kind="quiet"
          size="small"
          onClick={() => {
            setRecovery(!isRecovery)
            setCode('')
            setError(null)
          }}
        >
          {isRecovery ? 'Use the authenticator app' : 'Use a recovery code'}
        </Button>
      </div>
    </form>
  )
}

/** The frame of the pages before the dashboard: sign-in and set-up. */
export function EntryPage({
  title,
  text,
  children,
}: {
  readonly title: string
  readonly text: ReactNode
  readonly children: ReactNode
}) {
  return (
    <main className="entry">
      <div className="entry-card">
        <header className="entry-head">
          <Logo size={32} />
          <h1>{title}</h1>
          <p>{text}</p>
        </header>
        {children}
      </div>
      <p className="entry-host">{location.host}</p>
    </main>
  )
}

export function SignInPage() {
  return (
    <EntryPage title="Sign in to Plinth" text="The dashboard of this server.">
      <SignInForm />
    </EntryPage>
  )
}

/** Over the page, whose forms keep what was typed. */
export function SignInDialog() {
  const reason = useStore(session.reason)
  const current = useStore(session.current)
  return (
    <Dialog
      isOpen={reason !== null}
      isSticky
      size="small"
      title={reason === 'expired' ? 'Your session has ended' : 'Confirm that it is you'}
      description={
        reason === 'expired'
          ? 'Sign in to continue. Nothing that you entered is lost.'
          : 'This action needs a sign-in within the last ten minutes.'
      }
      onClose={() => session.decline()}
    >
      <SignInForm email={current?.user.email ?? null} />
    </Dialog>
  )
}
