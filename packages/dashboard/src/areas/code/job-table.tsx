/** Jobs as rows, and what each status means. */
import { useLocation } from 'wouter'
import { Badge, type Tone } from '../../design/badge.tsx'
import { formatCount } from '../../design/format/number.ts'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import { type Column, Table } from '../../design/table.tsx'
import type { JobStatus, ListedJob } from './requests.ts'

const tones: Readonly<Record<JobStatus, Tone>> = {
  waiting: 'neutral',
  running: 'accent',
  done: 'good',
  failed: 'warn',
  dead: 'bad',
}

export const StatusBadge = ({ status }: { readonly status: JobStatus }) => <Badge tone={tones[status]}>{status}</Badge>

export const jobHref = (id: string): string => `/code/job?${new URLSearchParams({ id })}`

const columns: readonly Column<ListedJob>[] = [
  {
    id: 'job',
    title: 'Job',
    cell: ({ id, function: name }) => (
      <span className="table-name">
        <strong>{name}</strong>
        <span>{id}</span>
      </span>
    ),
  },
  { id: 'status', title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
  { id: 'attempt', title: 'Attempts', isNumeric: true, isOptional: true, cell: ({ attempt }) => formatCount(attempt) },
  {
    id: 'time',
    title: 'Due',
    isOptional: true,
    cell: ({ runAt }) => <span title={formatTime(runAt)}>{formatAge(runAt)}</span>,
  },
  {
    id: 'error',
    title: 'Error',
    isOptional: true,
    cell: ({ error }) => error !== null && <span className="code-failure code-line">{error}</span>,
  },
]

export function JobTable({ jobs, title = 'Jobs' }: { readonly jobs: readonly ListedJob[]; readonly title?: string }) {
  const [, navigate] = useLocation()
  return (
    <Card title={title} isFlush>
      <Table
        label={title}
        rows={jobs}
        columns={columns}
        keyOf={({ id }) => id}
        onOpen={({ id }) => navigate(jobHref(id))}
      />
    </Card>
  )
}
