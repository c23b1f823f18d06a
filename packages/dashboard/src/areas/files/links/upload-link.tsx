/** Creates a signed link with which one file can be uploaded without a sign-in. */
import { useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field, TextField } from '../../../design/field.tsx'
import { Select } from '../../../design/select.tsx'
import { shellArgument } from '../../../text/shell-argument.ts'
import { CreatedLink } from './created-link.tsx'
import { createUploadLink, type Lifetime, lifetimes, type SignedLink } from './requests.ts'

/** The form that the link accepts. */
const commandOf = ({ url }: SignedLink, key: string): string =>
  `curl -F ${shellArgument(`key=${key}`)} -F file=@FILE ${shellArgument(url)}`

export function UploadLinkButton({ bucket, prefix }: { readonly bucket: string; readonly prefix: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button icon="link" onClick={() => setOpen(true)}>
        Upload link…
      </Button>
      {isOpen && <UploadLinkDialog bucket={bucket} prefix={prefix} onClose={() => setOpen(false)} />}
    </>
  )
}

interface UploadLinkDialogProps {
  readonly bucket: string
  readonly prefix: string
  readonly onClose: () => void
}

function UploadLinkDialog({ bucket, prefix, onClose }: UploadLinkDialogProps) {
  const [key, setKey] = useState(prefix)
  const [maxFileSize, setMaxFileSize] = useState('')
  const [lifetime, setLifetime] = useState<Lifetime>('1h')
  const [link, setLink] = useState<SignedLink | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const isComplete = key !== '' && !key.endsWith('/')

  const create = async (): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      const size = maxFileSize.trim()
      setLink(
        await createUploadLink(bucket, { key, expiresIn: lifetime, ...(size === '' ? {} : { maxFileSize: size }) }),
      )
    } catch (caught) {
      setLink(null)
      setError(caught)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      isOpen
      isSticky
      onClose={onClose}
      title="Upload link"
      description="The link uploads one file under this key, without a sign-in."
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" form="upload-link" type="submit" isBusy={isBusy} disabled={!isComplete}>
            Create link
          </Button>
        </>
      }
    >
      <form
        id="upload-link"
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (isComplete) void create()
        }}
      >
        <TextField
          label="Key"
          hint="A file that is already there is replaced."
          value={key}
          spellCheck={false}
          onChange={(event) => setKey(event.target.value)}
        />
        <Field label="Lifetime">
          {({ id }) => <Select<Lifetime> id={id} value={lifetime} options={lifetimes} onChange={setLifetime} />}
        </Field>
        <TextField
          label="Largest size"
          hint="Such as 5MB; empty for the limit of the bucket."
          value={maxFileSize}
          spellCheck={false}
          onChange={(event) => setMaxFileSize(event.target.value)}
        />
        {error !== null && <ErrorNote error={error} />}
        {link !== null && (
          <CreatedLink link={link} label="Upload link" command={commandOf(link, key)}>
            Links are not stored, so they are neither listed nor revoked one by one. This one ends with its first
            upload, and when you lose the right to write the file.
          </CreatedLink>
        )}
      </form>
    </Dialog>
  )
}
