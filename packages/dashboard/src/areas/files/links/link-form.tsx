/** Creates a signed link to a file and copies it. */
import { useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Select } from '../../../design/select.tsx'
import { useToasts } from '../../../design/toast.tsx'
import { CreatedLink } from './created-link.tsx'
import { createLink, type Lifetime, lifetimes, type SignedLink } from './requests.ts'

export function LinkForm({ bucket, fileKey }: { readonly bucket: string; readonly fileKey: string }) {
  const toasts = useToasts()
  const [lifetime, setLifetime] = useState<Lifetime>('1h')
  const [isBusy, setBusy] = useState(false)
  const [link, setLink] = useState<SignedLink | null>(null)
  const copy = async (): Promise<void> => {
    setBusy(true)
    try {
      const created = await createLink(bucket, fileKey, lifetime)
      setLink(created)
      await navigator.clipboard.writeText(created.url)
      toasts.add({
        title: 'Link copied',
        text: 'It gives access to the file without sign-in until it expires.',
        tone: 'good',
      })
    } catch (error) {
      toasts.fail('The link was not copied', error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <section className="stack" aria-label="Signed link">
      <div className="files-actions">
        <Select<Lifetime> label="Lifetime of the link" value={lifetime} options={lifetimes} onChange={setLifetime} />
        <Button icon="link" isBusy={isBusy} onClick={() => void copy()}>
          Copy signed link
        </Button>
      </div>
      {link !== null && (
        <CreatedLink link={link} label="Signed link">
          Links are not stored, so they are neither listed nor revoked one by one. This one ends sooner when the file is
          replaced or deleted, and when you lose the right to read it.
        </CreatedLink>
      )}
    </section>
  )
}
