/** The queues with their counts, and their jobs by status. */

import { useUrlState } from '../../app/url-state.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { LoadMore } from '../../design/table.tsx'
import { CodePage } from './code-page.tsx'
import { JobTable } from './job-table.tsx'
import { QueueTable } from './queue-table.tsx'
import { type JobStatus, jobStatuses, useJobs, useQueues } from './requests.ts'

const all = '*'
const statusOptions = [
  { value: all, label: 'Every status' },
  ...jobStatuses.map((status) => ({ value: status as string, label: status as string })),
]

const statusOf = (text: string | null): JobStatus | '' => jobStatuses.find((status) => status === text) ?? ''

export function Jobs() {
  const url = useUrlState()
  const [queue, status] = [url.get('queue') ?? '', statusOf(url.get('status'))]
  const { data: queues = [] } = useQueues()
  const query = useJobs({ queue, status })
  const jobs = query.data?.pages.flatMap((page) => page.items) ?? []
  const names = new Set([...queues.map(({ name }) => name), ...(queue === '' ? [] : [queue])])
  const isFiltered = queue !== '' || status !== ''
  return (
    <CodePage
      current="jobs"
      description="Work that outlives its request: after changes, on schedules, and from queues."
      query={query}
    >
      {queues.length > 0 && <QueueTable label="Queues" queues={queues} />}
      <Toolbar label="Jobs">
        <Select
          className="code-select"
          label="Queue"
          value={queue === '' ? all : queue}
          options={[{ value: all, label: 'Every queue' }, ...[...names].map((name) => ({ value: name, label: name }))]}
          onChange={(next) => url.set({ queue: next === all ? null : next })}
        />
        <Select
          className="code-select"
          label="Status"
          value={status === '' ? all : status}
          options={statusOptions}
          onChange={(next) => url.set({ status: next === all ? null : next })}
        />
      </Toolbar>
      {query.data !== undefined && jobs.length === 0 && <NoJobs isFiltered={isFiltered} />}
      {jobs.length > 0 && <JobTable jobs={jobs} />}
      <LoadMore pages={query} />
    </CodePage>
  )
}

const sample = `export const thumbs = queue('thumbs', { concurrency: 4 }, async (input, ctx) => {
  ctx.log.info('thumbnail', { key: input.key })
})

// In any other function:
await ctx.enqueue('thumbs', { key: 'a.png' })`

const NoJobs = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <EmptyState icon="filter" title="No job fits these filters">
      Jobs that are done are kept for a while, dead letters longer.
    </EmptyState>
  ) : (
    <EmptyState icon="code" title="No jobs yet">
      <p>A job is stored before it runs, and runs again if it fails.</p>
      <div className="code-sample">
        <CodeBlock code={sample} label="functions/index.ts" />
      </div>
    </EmptyState>
  )
