/** Bulk changes of a view: the actions of its menu, the dialog, and the job that is under way. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import type { MenuAction } from '../../../design/menu.tsx'
import { useToasts } from '../../../design/toast.tsx'
import type { TableAddress } from '../location.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { BulkDialog } from './bulk-dialog.tsx'
import { CancelJob, describeJob, JobProgress } from './job-progress.tsx'
import { type BulkChange, type BulkJob, isUnderWay, useLatestJob } from './requests.ts'

export interface BulkView {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly query: RowQuery
  readonly names: readonly string[]
  readonly shown: readonly string[]
  readonly canWrite: boolean
  /** The rows of the table have changed. */
  readonly onChanged: () => void
}

export function useBulk(view: BulkView): { readonly actions: readonly MenuAction[]; readonly content: ReactNode } {
  const { address, canWrite, onChanged } = view
  const [action, setAction] = useState<BulkChange['action'] | null>(null)
  const [isShown, setShown] = useState(false)
  const { data: job = null } = useLatestJob(address)
  useEnd(job, onChanged)
  const isBusy = isUnderWay(job)
  const actions: readonly MenuAction[] = canWrite
    ? [
        { label: 'Change matching…', icon: 'edit', isDisabled: isBusy, run: () => setAction('update') },
        {
          label: 'Delete matching…',
          icon: 'trash',
          isDangerous: true,
          isDisabled: isBusy,
          run: () => setAction('delete'),
        },
      ]
    : []
  const content = (
    <>
      {isBusy && job !== null && action === null && (
        <div className="data-bulk-banner" role="status">
          <span className="spinner" aria-hidden="true" />
          <span className="data-bulk-banner-text">{describeJob(job)}</span>
          <Button size="small" kind="quiet" onClick={() => setShown(true)}>
            Show
          </Button>
          {canWrite && <CancelJob address={address} job={job} />}
        </div>
      )}
      {action !== null && <BulkDialog {...view} action={action} job={job} onClose={() => setAction(null)} />}
      {isShown && job !== null && (
        <Dialog
          isOpen
          onClose={() => setShown(false)}
          title={job.action === 'delete' ? 'Delete matching records' : 'Change matching records'}
          {...(job.startedBy === null ? {} : { description: `Started by ${job.startedBy}` })}
        >
          <JobProgress job={job} />
        </Dialog>
      )}
    </>
  )
  return { actions, content }
}

/** Says how a job has ended that this page has seen under way, and shows the rows as they are then. */
function useEnd(job: BulkJob | null, onChanged: () => void): void {
  const toasts = useToasts()
  const running = useRef<string | null>(null)
  const changed = useRef(onChanged)
  changed.current = onChanged
  useEffect(() => {
    if (job === null) return
    if (isUnderWay(job)) running.current = job.id
    else if (running.current === job.id) {
      running.current = null
      const isGood = job.state === 'done' && job.failed === 0
      toasts.add({ title: describeJob(job), tone: isGood ? 'good' : job.state === 'canceled' ? 'neutral' : 'bad' })
      changed.current()
    }
  }, [job, toasts])
}
