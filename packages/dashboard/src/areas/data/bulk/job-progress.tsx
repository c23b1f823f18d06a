/** How far a bulk job has come, and the records that were refused. */
import { useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Progress } from '../../../design/progress/progress.tsx'
import { useToasts } from '../../../design/toast.tsx'
import type { TableAddress } from '../location.ts'
import { type BulkJob, cancelJob, isUnderWay } from './requests.ts'

const count = (value: number): string => value.toLocaleString('en')
export const recordsOf = (value: number): string => (value === 1 ? '1 record' : `${count(value)} records`)

/** What has happened so far, in one sentence. */
export function describeJob({ action, state, total, changed, failed }: BulkJob): string {
  const verb = action === 'delete' ? 'deleted' : 'changed'
  const refused = failed > 0 ? `, ${count(failed)} refused` : ''
  switch (state) {
    case 'waiting':
      return `${recordsOf(total)} will be ${verb} when another job has ended`
    case 'running':
      return `${count(changed)} of ${recordsOf(total)} ${verb}${refused}`
    case 'done':
      return `${recordsOf(changed)} ${verb}${refused}`
    case 'canceled':
      return `Canceled after ${recordsOf(changed)} ${changed === 1 ? 'was' : 'were'} ${verb}${refused}`
    case 'failed':
      return `Ended after ${recordsOf(changed)} ${changed === 1 ? 'was' : 'were'} ${verb}${refused}`
  }
}

const toneOf = ({ state, failed }: BulkJob): 'accent' | 'good' | 'bad' =>
  state === 'failed' ? 'bad' : state === 'done' && failed === 0 ? 'good' : 'accent'

export function JobProgress({ job }: { readonly job: BulkJob }) {
  const isOver = job.state === 'done'
  return (
    <div className="stack">
      <Progress
        label="Records"
        value={isOver ? job.total : job.changed + job.failed}
        max={job.total}
        tone={toneOf(job)}
      >
        {describeJob(job)}.
      </Progress>
      {job.error !== null && job.state === 'failed' && <p className="data-bulk-error">{job.error}</p>}
      {job.failures.length > 0 && (
        <section className="data-bulk-failures" aria-label="Refused records">
          <h3>
            Refused
            {job.failed > job.failures.length && `, the first ${job.failures.length}`}
          </h3>
          <ul>
            {job.failures.map(({ id, message }) => (
              <li key={id}>
                <code>{id}</code> <span dir="auto">{message}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  )
}

export function CancelJob({ address, job }: { readonly address: TableAddress; readonly job: BulkJob }) {
  const toasts = useToasts()
  const [isBusy, setBusy] = useState(false)
  if (!isUnderWay(job)) return null
  const cancel = async (): Promise<void> => {
    setBusy(true)
    await cancelJob(address, job.id).catch((error) => toasts.fail('The job was not canceled', error))
    setBusy(false)
  }
  return (
    <Button size="small" isBusy={isBusy} onClick={() => void cancel()}>
      Cancel job
    </Button>
  )
}
