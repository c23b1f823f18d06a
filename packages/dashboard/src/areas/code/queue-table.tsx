/** Queues, or functions with jobs: how many jobs wait, run and are dead, and whether new ones start. */
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { formatCount } from '../../design/format/number.ts'
import { formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type Queue, setPaused, useFunctionChange } from './requests.ts'

const countOf = (status: keyof Queue['counts'], title: string, isOptional = false): Column<Queue> => ({
  id: status,
  title,
  isNumeric: true,
  isOptional,
  cell: ({ counts }) => formatCount(counts[status]),
})

const columns: readonly Column<Queue>[] = [
  {
    id: 'name',
    title: 'Queue',
    cell: ({ name, function: of }) => (
      <span className="table-name">
        <Link href={`/code/jobs?${new URLSearchParams({ queue: name })}`}>{name}</Link>
        {of !== name && <span>{of}</span>}
      </span>
    ),
  },
  { id: 'kind', title: 'Kind', isOptional: true, cell: ({ kind }) => <Badge>{kind}</Badge> },
  {
    id: 'state',
    title: 'State',
    cell: ({ pausedAt }) =>
      pausedAt === null ? (
        <Badge tone="good">runs</Badge>
      ) : (
        <span title={`since ${formatTime(pausedAt)}`}>
          <Badge tone="warn">paused</Badge>
        </span>
      ),
  },
  countOf('waiting', 'Waiting'),
  countOf('running', 'Running', true),
  countOf('failed', 'To repeat', true),
  countOf('done', 'Done', true),
  countOf('dead', 'Dead'),
]

const actions: Column<Queue> = { id: 'actions', title: 'Actions', cell: (queue) => <PauseButton queue={queue} /> }

export function QueueTable({ label, queues }: { readonly label: string; readonly queues: readonly Queue[] }) {
  const permits = usePermits()
  const shown = permits('functions:admin:*:write') ? [...columns, actions] : columns
  return (
    <Card title={label} isFlush>
      <Table label={label} rows={queues} columns={shown} keyOf={(queue) => queue.function} />
    </Card>
  )
}

function PauseButton({ queue: { name, pausedAt } }: { readonly queue: Queue }) {
  const toasts = useToasts()
  const change = useFunctionChange(setPaused)
  const isPaused = pausedAt !== null
  return (
    <Button
      size="small"
      isBusy={change.isPending}
      aria-label={`${isPaused ? 'Resume' : 'Pause'} ${name}`}
      onClick={() =>
        change.mutate(
          { name, isPaused: !isPaused },
          {
            onSuccess: () =>
              toasts.add({
                title: isPaused ? 'Queue resumed' : 'Queue paused: no more of its jobs start',
                tone: 'good',
              }),
            onError: (error) => toasts.fail('The queue was not changed', error),
          },
        )
      }
    >
      {isPaused ? 'Resume' : 'Pause'}
    </Button>
  )
}
