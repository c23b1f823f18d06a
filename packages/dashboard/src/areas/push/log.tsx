/** The results of the messages of the last 24 hours, one per device. */
import { Link } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { Badge } from '../../design/badge.tsx'
import { IconButton } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch } from '../../design/field.tsx'
import { formatTime } from '../../design/format-time.ts'
import { Card, Spacer, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { type PushLog, usePushLogs } from './requests.ts'

const tones = { sent: 'good', failed: 'bad', removed: 'warn' } as const

const columns: readonly Column<PushLog>[] = [
  {
    id: 'message',
    title: 'Message',
    cell: ({ title, body }) => (
      <span className="table-name">
        <strong dir="auto">{title}</strong>
        <span dir="auto">{body}</span>
      </span>
    ),
  },
  {
    id: 'status',
    title: 'Result',
    cell: ({ status, error }) => (
      <span className="push-result">
        <Badge tone={tones[status]}>{status}</Badge>
        {error !== null && <code>{error}</code>}
      </span>
    ),
  },
  { id: 'platform', title: 'Platform', isOptional: true, cell: ({ platform }) => platform },
  {
    id: 'user',
    title: 'User',
    isOptional: true,
    cell: ({ userId }) =>
      userId === '' ? 'None' : <Link href={`/users/${encodeURIComponent(userId)}`}>{userId}</Link>,
  },
  { id: 'time', title: 'Time', isOptional: true, cell: ({ timestamp }) => formatTime(timestamp) },
]

export function Log() {
  const url = useUrlState()
  const userId = url.get('user') ?? ''
  const { data: logs, error, refetch } = usePushLogs(userId)
  return (
    <section className="push-log" aria-label="Log">
      <Toolbar label="Log">
        <DelayedSearch
          className="push-search"
          label="User id"
          initial={userId}
          maxLength={256}
          onSearch={(text) => url.set({ user: text.trim() }, { replace: true })}
        />
        <Spacer />
        <IconButton icon="refresh" label="Reload the log" onClick={() => void refetch()} />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {logs === undefined && error === null && <Skeleton lines={5} />}
      {logs?.length === 0 && (
        <EmptyState icon="push" title="No messages in the last 24 hours">
          Each message to a device appears here with its result.
        </EmptyState>
      )}
      {logs !== undefined && logs.length > 0 && (
        <Card isFlush>
          <Table label="Messages" rows={logs} columns={columns} keyOf={({ id }) => id} />
        </Card>
      )}
    </section>
  )
}
