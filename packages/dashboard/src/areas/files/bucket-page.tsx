/** One bucket: its folders and files, uploads, and what can be done with several files. */
import { useState } from 'react'
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Icon } from '../../design/icons.tsx'
import { Page, Spacer, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { useToasts } from '../../design/toast.tsx'
import { FilePanel } from './file-panel.tsx'
import { FileTable } from './file-table.tsx'
import { entriesOf, stepsOf } from './folders.ts'
import { UploadLinkButton } from './links/upload-link.tsx'
import { deleteFiles, useFiles, useRefresh } from './requests.ts'
import { DropZone, UploadButton, UploadList } from './upload-list.tsx'
import { useUploads } from './uploads.ts'
import { useHasUsage } from './usage/requests.ts'
import { UsageTab } from './usage/usage-tab.tsx'

export function BucketPage({ bucket }: { readonly bucket: string }) {
  const url = useUrlState()
  const hasUsage = useHasUsage()
  const prefix = url.get('prefix') ?? ''
  if (hasUsage && url.get('tab') === 'usage')
    return (
      <Page
        title={bucket}
        description={<Breadcrumb bucket={bucket} prefix="" />}
        tabs={<BucketTabs bucket={bucket} current="usage" />}
      >
        <UsageTab bucket={bucket} />
      </Page>
    )
  // Another folder begins with nothing selected.
  return <Folder key={prefix} bucket={bucket} prefix={prefix} />
}

function Folder({ bucket, prefix }: { readonly bucket: string; readonly prefix: string }) {
  const url = useUrlState()
  const permits = usePermits()
  const mayWrite = permits(`storage:bucket:${bucket}:write`)
  const mayDelete = permits(`storage:bucket:${bucket}:delete`)
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useFiles(bucket, prefix)
  const uploads = useUploads(bucket, prefix)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const files = data?.pages.flatMap((page) => page.files) ?? []
  const open = url.get('file')
  return (
    <Page
      title={bucket}
      description={<Breadcrumb bucket={bucket} prefix={prefix} />}
      actions={
        mayWrite && (
          <>
            <UploadLinkButton bucket={bucket} prefix={prefix} />
            <UploadButton onFiles={uploads.offer} />
          </>
        )
      }
      tabs={<BucketTabs bucket={bucket} current="files" />}
    >
      <DropZone isEnabled={mayWrite} onFiles={uploads.offer}>
        <UploadList uploads={uploads} />
        {mayDelete && selected.size > 0 && (
          <Selection bucket={bucket} keys={[...selected]} onEnd={() => setSelected(new Set())} />
        )}
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {data === undefined && error === null && <Skeleton lines={8} />}
        {data !== undefined && files.length === 0 && <NoFiles bucket={bucket} prefix={prefix} mayWrite={mayWrite} />}
        {files.length > 0 && (
          <FileTable
            entries={entriesOf(files, prefix)}
            isComplete={!hasNextPage}
            selected={mayDelete ? selected : null}
            onSelect={setSelected}
            open={open}
          />
        )}
        {hasNextPage && (
          <div className="files-more">
            <span>Folders and files after “{files.at(-1)?.key}” are not loaded yet.</span>
            <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Load more
            </Button>
          </div>
        )}
      </DropZone>
      {open !== null && (
        <FilePanel
          key={open}
          bucket={bucket}
          fileKey={open}
          mayDelete={mayDelete}
          onClose={() => url.set({ file: null })}
        />
      )}
    </Page>
  )
}

function BucketTabs({ bucket, current }: { readonly bucket: string; readonly current: 'files' | 'usage' }) {
  const path = `/files/${encodeURIComponent(bucket)}`
  if (!useHasUsage()) return null
  const tabs = [
    { id: 'files', label: 'Files', href: path },
    { id: 'usage', label: 'Usage', href: `${path}?tab=usage` },
  ]
  return <Tabs tabs={tabs} current={current} label={bucket} />
}

function Breadcrumb({ bucket, prefix }: { readonly bucket: string; readonly prefix: string }) {
  const url = useUrlState()
  const steps = [{ name: bucket, prefix: '' }, ...stepsOf(prefix)]
  return (
    <span className="files-crumbs">
      <Link href="/files">Files</Link>
      {steps.map((step) => (
        <span key={step.prefix} className="files-crumb">
          <Icon name="chevron-right" size={12} />
          {step.prefix === prefix ? (
            <span>{step.name}</span>
          ) : (
            <Link href={url.href({ prefix: step.prefix, file: null })}>{step.name}</Link>
          )}
        </span>
      ))}
    </span>
  )
}

interface SelectionProps {
  readonly bucket: string
  readonly keys: readonly string[]
  readonly onEnd: () => void
}

function Selection({ bucket, keys, onEnd }: SelectionProps) {
  const toasts = useToasts()
  const refresh = useRefresh(bucket)
  const [isDeleting, setDeleting] = useState(false)
  const count = keys.length === 1 ? '1 file' : `${keys.length} files`
  return (
    <Toolbar label="Selection">
      <strong>{count} selected</strong>
      <Spacer />
      <Button onClick={onEnd}>Clear</Button>
      <Button icon="trash" onClick={() => setDeleting(true)}>
        Delete {count}…
      </Button>
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${count}?`}
        action={`Delete ${count}`}
        onConfirm={async () => {
          // Also after a failure some of them are gone.
          await deleteFiles(bucket, keys).finally(() => void refresh())
          toasts.add({ title: `${count} deleted`, tone: 'good' })
          onEnd()
        }}
      >
        Links to them stop working. This cannot be undone.
      </ConfirmDialog>
    </Toolbar>
  )
}

interface NoFilesProps {
  readonly bucket: string
  readonly prefix: string
  readonly mayWrite: boolean
}

const NoFiles = ({ bucket, prefix, mayWrite }: NoFilesProps) => (
  <EmptyState icon="file" title={prefix === '' ? 'No files yet' : 'Nothing in this folder'}>
    <p>
      {mayWrite ? 'Drop files here, or upload them from your application. ' : 'Your application uploads files. '}A
      folder is the part of a key before a slash and exists while a file is in it.
    </p>
    <CodeBlock code={`await plinth.files('${bucket}').upload('${prefix}hello.txt', 'Hello')`} label="Client" />
  </EmptyState>
)
