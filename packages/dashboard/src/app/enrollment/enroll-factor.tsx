/** The first set-up of an authenticator app: its secret as a QR code and as text, recovery codes, the first code. */
import { lazy, Suspense, useEffect, useState } from 'react'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Checkbox } from '../../design/field.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Enrollment, enroll, type SecondFactor } from '../session-requests.ts'

/** Loaded on demand: enrollment is rare. */
const QrCode = lazy(async () => ({ default: (await import('./qr-code.tsx')).QrCode }))

/** In groups of four, as apps show it. */
const grouped = (secret: string): string => secret.replace(/(.{4})(?=.)/g, '$1 ')

export function EnrollFactor({ factor, onReady }: { readonly factor: SecondFactor; readonly onReady: () => void }) {
  const [enrollment, setEnrollment] = useState<Enrollment | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isKept, setKept] = useState(false)
  useEffect(() => {
    let isCurrent = true
    enroll(factor).then(
      (next) => isCurrent && setEnrollment(next),
      (failure) => isCurrent && setError(failure),
    )
    return () => {
      isCurrent = false
    }
  }, [factor])
  if (error !== null) return <ErrorNote error={error} />
  if (enrollment === null) return <Skeleton lines={5} />
  return (
    <div className="stack">
      <p>
        This server requires a second factor. Scan the code with an authenticator app,{' '}
        <a href={enrollment.qrCodeUri}>open it on this device</a>, or enter the key.
      </p>
      <Suspense fallback={<div className="qr-code" />}>
        <QrCode text={enrollment.qrCodeUri} label="QR code of the key below, for an authenticator app" />
      </Suspense>
      <CodeBlock label="Key" code={grouped(enrollment.secret)} />
      <CodeBlock label="Recovery codes, one use each" code={enrollment.recoveryCodes.join('\n')} />
      <Checkbox label="I have stored the recovery codes" checked={isKept} onChange={setKept} />
      <Button kind="primary" size="large" disabled={!isKept} onClick={onReady}>
        Continue
      </Button>
    </div>
  )
}
