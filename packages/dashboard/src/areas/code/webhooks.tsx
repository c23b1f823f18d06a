/** The webhooks that the application sends, and the deliveries of one of them. */

import { useUrlState } from '../../app/url-state.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { LoadMore } from '../../design/table.tsx'
import { CodePage } from './code-page.tsx'
import { JobTable } from './job-table.tsx'
import { QueueTable } from './queue-table.tsx'
import { useJobs, useQueues } from './requests.ts'

export function Webhooks() {
  const url = useUrlState()
  const query = useQueues()
  const hooks = query.data?.filter(({ kind }) => kind === 'webhook') ?? []
  const shown = hooks.find(({ name }) => name === url.get('name')) ?? hooks[0]
  return (
    <CodePage
      current="webhooks"
      description="Changes that are sent to other services, signed, until they are accepted."
      query={query}
    >
      {query.data !== undefined && hooks.length === 0 && <NoWebhooks />}
      {shown !== undefined && (
        <>
          <QueueTable label="Webhooks" queues={hooks} />
          <Toolbar label="Deliveries">
            <Select
              className="code-select"
              label="Webhook"
              value={shown.name}
              options={hooks.map(({ name }) => ({ value: name, label: name }))}
              onChange={(name) => url.set({ name })}
            />
          </Toolbar>
          <Deliveries key={shown.name} name={shown.name} />
        </>
      )}
    </CodePage>
  )
}

function Deliveries({ name }: { readonly name: string }) {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useJobs({ queue: name, status: '' })
  const jobs = data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data !== undefined && jobs.length === 0 && (
        <EmptyState icon="push" title="Nothing sent yet">
          A delivery appears with the first change that fits the webhook.
        </EmptyState>
      )}
      {jobs.length > 0 && <JobTable title="Deliveries" jobs={jobs} />}
      <LoadMore pages={{ hasNextPage, fetchNextPage, isFetchingNextPage }} />
    </>
  )
}

const sample = `export const crm = webhook('shared.orders', {
  url: secret('CRM_URL'),
  secret: secret('CRM_SECRET'),
  where: { paid: true },
})`

const NoWebhooks = () => (
  <EmptyState icon="push" title="No webhooks yet">
    <p>A webhook sends each change that fits to a URL, and repeats it for days if it is not accepted:</p>
    <div className="code-sample">
      <CodeBlock code={sample} label="functions/index.ts" />
    </div>
  </EmptyState>
)
