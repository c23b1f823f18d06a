/** One file: its preview, what is known about it, links to it. */
import { useState } from 'react'
import { Link } from 'wouter'
import { useIsReadOnly } from '../../app/permissions.ts'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog, Dialog } from '../../design/dialog.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes } from '../../design/format/number.ts'
import { formatTime } from '../../design/format-time.ts'
import { Facts } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { LinkForm } from './links/link-form.tsx'
import { Preview } from './preview.tsx'
import { deleteFiles, download, type StoredFile, useFile, useRefresh } from './requests.ts'

export interface FilePanelProps {
  readonly bucket: string
  readonly fileKey: string
  readonly mayDelete: boolean
  readonly onClose: () => void
}

export function FilePanel({ bucket, fileKey, mayDelete, onClose }: FilePanelProps) {
  const { data: file, error, refetch } = useFile(bucket, fileKey)
  const isReadOnly = useIsReadOnly()
  return (
    <Dialog isOpen onClose={onClose} title={fileKey.slice(fileKey.lastIndexOf('/') + 1)} shape="panel" isModal={false}>
      <div className="stack">
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {file === undefined && error === null && <Skeleton lines={6} />}
        {file !== undefined && (
          <>
            <Preview bucket={bucket} file={file} />
            <FileActions bucket={bucket} file={file} mayDelete={mayDelete} onDeleted={onClose} />
            {!isReadOnly && <LinkForm bucket={bucket} fileKey={file.key} />}
            <Facts facts={factsOf(file)} />
          </>
        )}
      </div>
    </Dialog>
  )
}

const factsOf = (file: StoredFile): readonly (readonly [string, React.ReactNode])[] => [
  ['Key', <code key="key">{file.key}</code>],
  ['Size', `${formatBytes(file.size)} (${file.size.toLocaleString('en')} bytes)`],
  ['Type', file.contentType],
  ['Uploaded', formatTime(file.uploaded)],
  [
    'Owner',
    file.uploadedBy === null ? (
      'None'
    ) : (
      <Link key="owner" href={`/users/${encodeURIComponent(file.uploadedBy)}`}>
        {file.uploadedBy}
      </Link>
    ),
  ],
  ...Object.entries(file.customMetadata).map(([name, value]) => [name, value] as const),
]

/** What a page can hold without trouble; a larger file is downloaded by a link. */
const downloadBytesMax = 200_000_000

/** Saves a file. Its type is none that a browser would open. */
function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content.slice(0, content.size, 'application/octet-stream'))
  const anchor = document.createElement('a')
  anchor.href = address
  anchor.download = name
  anchor.click()
  // The download has begun by then; the browser keeps what it reads.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

interface FileActionsProps {
  readonly bucket: string
  readonly file: StoredFile
  readonly mayDelete: boolean
  readonly onDeleted: () => void
}

function FileActions({ bucket, file, mayDelete, onDeleted }: FileActionsProps) {
  const toasts = useToasts()
  const refresh = useRefresh(bucket)
  const [isDeleting, setDeleting] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const name = file.key.slice(file.key.lastIndexOf('/') + 1)
  const isLarge = file.size > downloadBytesMax

  const start = async (): Promise<void> => {
    setBusy(true)
    try {
      save(await download(bucket, file.key), name)
    } catch (error) {
      toasts.fail('The file was not downloaded', error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="files-actions">
      <Button icon="download" isBusy={isBusy} disabled={isLarge} onClick={() => void start()}>
        Download
      </Button>
      {mayDelete && (
        <Button icon="trash" onClick={() => setDeleting(true)}>
          Delete…
        </Button>
      )}
      {isLarge && <p>Files above {formatBytes(downloadBytesMax)} are downloaded with a signed link.</p>}
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title="Delete this file?"
        action="Delete file"
        onConfirm={async () => {
          await deleteFiles(bucket, [file.key])
          toasts.add({ title: 'File deleted', tone: 'good' })
          void refresh()
          onDeleted()
        }}
      >
        Links to <code>{file.key}</code> stop working. This cannot be undone.
      </ConfirmDialog>
    </div>
  )
}
