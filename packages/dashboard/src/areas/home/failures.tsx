/** The latest requests that failed by a fault of the server. */
import { useQuery } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Card } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table } from '../../design/table.tsx'

interface FailedRequest {
  readonly requestId: string
  readonly at: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly slug: string | null
}

const shown = 8

export function Failures() {
  const { data, error, refetch } = useQuery({
    queryKey: ['failures'],
    refetchInterval: 15_000,
    queryFn: ({ signal }) =>
      api.get<{ items: readonly FailedRequest[] }>('/api/requests', { query: { status: '5xx', limit: shown }, signal }),
  })
  return (
    <Card title="Latest failures" isFlush={(data?.items.length ?? 0) > 0}>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton />}
      {data?.items.length === 0 && (
        <EmptyState icon="check" title="No failures">
          Requests that end with a status of 500 or more appear here.
        </EmptyState>
      )}
      {data !== undefined && data.items.length > 0 && (
        <Table
          label="Latest failures"
          rows={data.items}
          keyOf={({ requestId }) => requestId}
          columns={[
            { id: 'status', title: 'Status', cell: ({ status }) => status },
            { id: 'path', title: 'Request', cell: ({ method, path }) => <code>{`${method} ${path}`}</code> },
            { id: 'at', title: 'Time', isOptional: true, cell: ({ at }) => new Date(at).toLocaleTimeString('en') },
          ]}
        />
      )}
    </Card>
  )
}
