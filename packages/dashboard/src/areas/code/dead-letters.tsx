/** Jobs that have failed for good: why, and running one or all of them again. */

import { useState } from 'react'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount } from '../../design/format/number.ts'
import { Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { LoadMore } from '../../design/table.tsx'
import { useToasts } from '../../design/toast.tsx'
import { CodePage } from './code-page.tsx'
import { JobTable } from './job-table.tsx'
import { deadRetriedMax, retryDead, useFunctionChange, useJobs, useQueues } from './requests.ts'

const all = '*'

export function DeadLetters() {
  const url = useUrlState()
  const queue = url.get('queue') ?? ''
  const { data: queues = [] } = useQueues()
  const query = useJobs({ queue, status: 'dead' })
  const permits = usePermits()
  const jobs = query.data?.pages.flatMap((page) => page.items) ?? []
  const withDead = queues.filter(({ name, counts }) => counts.dead > 0 || name === queue)
  const total = withDead
    .filter(({ name }) => queue === '' || name === queue)
    .reduce((sum, { counts }) => sum + counts.dead, 0)
  return (
    <CodePage
      current="dead"
      description="Jobs that have used up their attempts, or were canceled. They run again only if you retry them."
      query={query}
    >
      {(jobs.length > 0 || queue !== '') && (
        <Toolbar label="Dead letters">
          <Select
            className="code-select"
            label="Queue"
            value={queue === '' ? all : queue}
            options={[
              { value: all, label: 'Every queue' },
              ...withDead.map(({ name, counts }) => ({ value: name, label: `${name} (${formatCount(counts.dead)})` })),
            ]}
            onChange={(next) => url.set({ queue: next === all ? null : next })}
          />
          <Spacer />
          {jobs.length > 0 && permits('functions:admin:*:write') && <RetryAll queue={queue} total={total} />}
        </Toolbar>
      )}
      {query.data !== undefined && jobs.length === 0 && (
        <EmptyState icon="check" title="No dead letters">
          A job that has used up its attempts waits here until you retry it.
        </EmptyState>
      )}
      {jobs.length > 0 && <JobTable title="Dead letters" jobs={jobs} />}
      <LoadMore pages={query} />
    </CodePage>
  )
}

function RetryAll({ queue, total }: { readonly queue: string; readonly total: number }) {
  const toasts = useToasts()
  const [isAsking, setAsking] = useState(false)
  const retry = useFunctionChange(retryDead)
  return (
    <>
      <Button icon="refresh" onClick={() => setAsking(true)}>
        Retry all…
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title={queue === '' ? 'Retry all dead letters?' : `Retry the dead letters of ${queue}?`}
        action="Retry all"
        onConfirm={async () => {
          const retried = await retry.mutateAsync(queue)
          toasts.add({ title: `${formatCount(retried)} jobs run again`, tone: 'good' })
        }}
      >
        {total > deadRetriedMax
          ? `The newest ${formatCount(deadRetriedMax)} of ${formatCount(total)} dead letters run again.`
          : 'Each of them runs again with its input.'}{' '}
        Effects outside of the server, such as mails, can happen twice.
      </ConfirmDialog>
    </>
  )
}
