/** One job: its input, its attempts and error, its log lines, and what an administrator can do. */
import { useState } from 'react'
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatCount } from '../../design/format/number.ts'
import { formatTime } from '../../design/format-time.ts'
import { Icon } from '../../design/icons.tsx'
import { JsonTree } from '../../design/json/tree.tsx'
import { Card, Facts, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { linesHref } from './code-page.tsx'
import { StatusBadge } from './job-table.tsx'
import { LineList } from './line-list.tsx'
import { cancelJob, type Job, retryJob, useFunctionChange, useJob, useLines } from './requests.ts'

const timeOf = (iso: string | null): string => (iso === null ? '–' : formatTime(iso))

export function JobPage({ id }: { readonly id: string }) {
  const { data: job, error, refetch } = useJob(id)
  const permits = usePermits()
  const back = (
    <Link href="/code/jobs" className="code-back">
      <Icon name="chevron-left" /> Queues and jobs
    </Link>
  )
  if (job === undefined)
    return (
      <Page title="Job" description={back}>
        {error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} onRetry={() => void refetch()} />}
      </Page>
    )
  return (
    <Page
      title={job.function}
      description={back}
      actions={permits('functions:admin:*:write') && <JobActions job={job} />}
    >
      <div className="code-grid">
        <Card title="Job">
          <Facts
            facts={[
              ['Status', <StatusBadge key="status" status={job.status} />],
              ['Id', <code key="id">{job.id}</code>],
              ['Kind', job.kind],
              ['Attempts', formatCount(job.attempt)],
              ['Key', job.key ?? '–'],
              ['Added', timeOf(job.createdAt)],
              ['Due', timeOf(job.runAt)],
              ['Last start', timeOf(job.startedAt)],
              ['Finished', timeOf(job.finishedAt)],
            ]}
          />
        </Card>
        <div className="code-views">
          {job.error !== null && (
            <Card title="Error of the last failed attempt">
              <pre className="code-text code-failure">{job.error}</pre>
            </Card>
          )}
          <Card title="Input">
            <JsonTree label="Input" value={job.input} />
          </Card>
        </div>
      </div>
      <JobLines id={id} />
    </Page>
  )
}

function JobLines({ id }: { readonly id: string }) {
  const { data, error, refetch } = useLines({ function: '', requestId: id, level: 'debug' })
  return (
    <Card
      title="Log lines of its attempts"
      actions={<Link href={linesHref({ request: id, level: 'debug' })}>Open in logs</Link>}
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data?.length === 0 && (
        <EmptyState icon="logs" title="No lines">
          This node keeps the latest lines in memory. What ran on another node or before its start is in the log of the
          server.
        </EmptyState>
      )}
      {data !== undefined && data.length > 0 && <LineList lines={data} />}
    </Card>
  )
}

function JobActions({ job: { id, status } }: { readonly job: Job }) {
  const toasts = useToasts()
  const [isCanceling, setCanceling] = useState(false)
  const retry = useFunctionChange(retryJob)
  const cancel = useFunctionChange(cancelJob)
  const isFinished = status === 'done' || status === 'dead'
  const mayRetry = status !== 'done' && status !== 'running'
  return (
    <>
      {mayRetry && (
        <Button
          icon="refresh"
          isBusy={retry.isPending}
          onClick={() =>
            retry.mutate(id, {
              onSuccess: () => toasts.add({ title: 'The job runs when a node has room', tone: 'good' }),
              onError: (error) => toasts.fail('The job was not retried', error),
            })
          }
        >
          {status === 'dead' ? 'Retry' : 'Run now'}
        </Button>
      )}
      {!isFinished && (
        <Button kind="danger" onClick={() => setCanceling(true)}>
          Cancel job…
        </Button>
      )}
      <ConfirmDialog
        isOpen={isCanceling}
        onClose={() => setCanceling(false)}
        title="Cancel this job?"
        action="Cancel the job"
        onConfirm={async () => {
          await cancel.mutateAsync(id)
          toasts.add({ title: 'Job canceled', tone: 'good' })
        }}
      >
        The job becomes a dead letter. What it has done so far stays; the result of an attempt under way has no effect.
      </ConfirmDialog>
    </>
  )
}
