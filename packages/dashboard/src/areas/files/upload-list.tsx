/** Where files are chosen or dropped, and how far their uploads are. */
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { Button, IconButton } from '../../design/button.tsx'
import { classNames } from '../../design/class-names.ts'
import { describeError } from '../../design/describe-error.ts'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { formatBytes } from '../../design/format/number.ts'
import { Card } from '../../design/page.tsx'
import type { UploadState, Uploads } from './uploads.ts'

type OnFiles = (files: readonly File[]) => void

export function UploadButton({ onFiles }: { readonly onFiles: OnFiles }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button kind="primary" icon="upload" onClick={() => input.current?.click()}>
        Upload
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])])
          // The same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}

interface DropZoneProps {
  readonly isEnabled: boolean
  readonly onFiles: OnFiles
  readonly children: ReactNode
}

export function DropZone({ isEnabled, onFiles, children }: DropZoneProps) {
  const [isOver, setOver] = useState(false)
  const hasFiles = (event: DragEvent): boolean => isEnabled && event.dataTransfer.types.includes('Files')
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same for those without a pointer.
    <div
      className={classNames('files-drop', isOver && 'is-over')}
      onDragOver={(event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false)
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        setOver(false)
        onFiles([...event.dataTransfer.files])
      }}
    >
      {children}
    </div>
  )
}

export function UploadList({ uploads }: { readonly uploads: Uploads }) {
  const { all, taken } = uploads
  const count = taken.length === 1 ? '1 file' : `${taken.length} files`
  return (
    <>
      {all.length > 0 && (
        <Card
          title="Uploads"
          actions={<IconButton icon="close" label="Hide finished uploads" size="small" onClick={uploads.clear} />}
        >
          <ul className="files-uploads">
            {all.map((upload) => (
              <UploadRow key={upload.id} upload={upload} onCancel={() => uploads.cancel(upload.id)} />
            ))}
          </ul>
        </Card>
      )}
      <ConfirmDialog
        isOpen={taken.length > 0}
        onClose={() => uploads.replace(false)}
        title={`Replace ${count}?`}
        action={`Replace ${count}`}
        onConfirm={async () => uploads.replace(true)}
      >
        <p>This folder already has:</p>
        <ul>
          {taken.slice(0, 10).map(({ name }) => (
            <li key={name}>{name}</li>
          ))}
        </ul>
        <p>What is stored under these names is lost.</p>
      </ConfirmDialog>
    </>
  )
}

function UploadRow({ upload, onCancel }: { readonly upload: UploadState; readonly onCancel: () => void }) {
  const { key, size, sent, state, error } = upload
  return (
    <li>
      <span className="files-upload">
        <strong>{key}</strong>
        <span className={classNames(state === 'failed' && 'is-bad')}>{noteOf(upload)}</span>
      </span>
      {(state === 'waiting' || state === 'running') && (
        <>
          <progress max={size || 1} value={sent} aria-label={`Upload of ${key}`} />
          <IconButton icon="close" label={`Cancel the upload of ${key}`} size="small" onClick={onCancel} />
        </>
      )}
      {error !== null && (
        <span className="visually-hidden" role="alert">{`${key}: ${describeError(error).title}`}</span>
      )}
    </li>
  )
}

function noteOf({ state, size, sent, error }: UploadState): string {
  switch (state) {
    case 'waiting':
      return 'Waiting'
    case 'running':
      return `${formatBytes(sent)} of ${formatBytes(size)}`
    case 'done':
      return `Uploaded · ${formatBytes(size)}`
    case 'failed':
      return describeError(error).title
  }
}
