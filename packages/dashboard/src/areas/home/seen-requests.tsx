/** The latest requests of a kind, such as failures; each leads to its explanation. */
import { Link } from 'wouter'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatDuration } from '../../design/format/number.ts'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useSeenRequests } from './requests.ts'

export interface SeenRequestsProps {
  readonly title: string
  readonly filter: { readonly status?: string; readonly minMs?: string }
  readonly emptyTitle: string
  readonly emptyText: string
}

export function SeenRequests({ title, filter, emptyTitle, emptyText }: SeenRequestsProps) {
  const { data, error, refetch } = useSeenRequests(filter)
  const items = data?.items ?? []
  return (
    <Card
      title={title}
      isFlush={items.length > 0}
      actions={
        items.length > 0 && (
          <Link
            className="button button-plain button-small"
            href={`/insights?${new URLSearchParams({ tab: 'requests', ...filter })}`}
          >
            All
          </Link>
        )
      }
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data !== undefined && items.length === 0 && (
        <EmptyState icon="check" title={emptyTitle}>
          {emptyText}
        </EmptyState>
      )}
      <ul className="home-requests">
        {items.map(({ requestId, method, path, status, ms, at }) => (
          <li key={requestId}>
            <Link href={`/insights/requests/${encodeURIComponent(requestId)}`}>
              <code>
                {method} {path}
              </code>
              <span>
                {status} · {formatDuration(ms)} · {new Date(at).toLocaleTimeString('en-GB')}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  )
}
