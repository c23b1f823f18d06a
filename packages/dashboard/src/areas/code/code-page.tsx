/** The frame that the views of the area share: title, tabs, errors and the outline of what is being loaded. */
import type { ReactNode } from 'react'
import { ErrorNote } from '../../design/error-note.tsx'
import { Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Tabs } from '../../design/tabs.tsx'

const tabs = [
  { id: 'functions', label: 'Functions', href: '/code' },
  { id: 'schedules', label: 'Schedules', href: '/code/schedules' },
  { id: 'jobs', label: 'Queues and jobs', href: '/code/jobs' },
  { id: 'dead', label: 'Dead letters', href: '/code/dead' },
  { id: 'webhooks', label: 'Webhooks', href: '/code/webhooks' },
  { id: 'logs', label: 'Logs', href: '/code/logs' },
] as const

export interface CodePageProps {
  readonly current: (typeof tabs)[number]['id']
  readonly description: string
  /** What the view shows; undefined while it is loaded. */
  readonly query: { readonly data: unknown; readonly error: unknown; readonly refetch: () => unknown }
  readonly children: ReactNode
}

export function CodePage({ current, description, query: { data, error, refetch }, children }: CodePageProps) {
  return (
    <Page title="Code" description={description} tabs={<Tabs label="Code" current={current} tabs={tabs} />}>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      <div className="code-views">{children}</div>
    </Page>
  )
}

export const linesHref = (parameters: Readonly<Record<string, string>>): string =>
  `/code/logs?${new URLSearchParams(parameters)}`
