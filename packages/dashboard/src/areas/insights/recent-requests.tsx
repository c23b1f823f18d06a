/** The last requests of all nodes, one per line; each leads to its explanation. */
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch, Switch } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { Card, Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { requestPath } from './request/links.ts'
import { type RequestFilter, type SeenRequest, useRecentRequests } from './requests.ts'
import { toneOf } from './status-tone.ts'

const statuses = [
  { value: 'all', label: 'Every status' },
  { value: '2xx', label: '2xx' },
  { value: '4xx', label: '4xx' },
  { value: '5xx', label: '5xx' },
] as const
const durations = [
  { value: '0', label: 'Any duration' },
  { value: '50', label: '50 ms or more' },
  { value: '500', label: '500 ms or more' },
] as const

const columns: readonly Column<SeenRequest>[] = [
  {
    id: 'request',
    title: 'Request',
    cell: ({ method, path }) => (
      <code className="insights-path">
        {method} {path}
      </code>
    ),
  },
  { id: 'status', title: 'Status', cell: ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge> },
  {
    id: 'traced',
    title: <span className="visually-hidden">Traced</span>,
    cell: ({ isTraced }) => isTraced && <Icon name="insights" size={12} label="Traced" />,
  },
  { id: 'ms', title: 'ms', isNumeric: true, cell: ({ ms }) => ms.toFixed(1) },
  {
    id: 'caller',
    title: 'Caller',
    isOptional: true,
    cell: ({ caller }) => <span className="insights-caller">{caller}</span>,
  },
  { id: 'at', title: 'Time', isOptional: true, cell: ({ at }) => new Date(at).toLocaleTimeString('en-GB') },
]

const nodeColumn: Column<SeenRequest> = {
  id: 'node',
  title: 'Node',
  isOptional: true,
  cell: ({ node }) => (
    <span className="insights-caller">
      {node.host} {node.id.slice(0, 8)}
    </span>
  ),
}

const oneOf = <Value extends string>(options: readonly { readonly value: Value }[], text: string | null): Value =>
  options.find(({ value }) => value === text)?.value ?? (options[0]?.value as Value)

const textCharsMax = 200

export function Requests() {
  const url = useUrlState()
  const [isFollowing, setFollowing] = useState(true)
  const [, navigate] = useLocation()
  const status = oneOf(statuses, url.get('status'))
  const minMs = oneOf(durations, url.get('minMs'))
  const filter: RequestFilter = {
    status: status === 'all' ? '' : status,
    path: url.get('path') ?? '',
    endpoint: url.get('endpoint') ?? '',
    caller: url.get('caller') ?? '',
    minMs: minMs === '0' ? '' : minMs,
  }
  const { data, error, refetch } = useRecentRequests(filter, isFollowing)
  return (
    <>
      <Toolbar label="Filters">
        <DelayedSearch
          className="insights-search"
          label="Path, such as /api/db"
          initial={filter.path}
          maxLength={textCharsMax}
          onSearch={(path) => url.set({ path }, { replace: true })}
        />
        <Select
          className="insights-select"
          label="Status"
          value={status}
          options={statuses}
          onChange={(next) => url.set({ status: next })}
        />
        <Select
          className="insights-select"
          label="Duration"
          value={minMs}
          options={durations}
          onChange={(next) => url.set({ minMs: next })}
        />
        {(['endpoint', 'caller'] as const).map(
          (name) =>
            filter[name] !== '' && (
              <Button key={name} size="small" icon="close" onClick={() => url.set({ [name]: null })}>
                {filter[name]}
              </Button>
            ),
        )}
        <Spacer />
        <Switch label="Follow" checked={isFollowing} onChange={setFollowing} />
      </Toolbar>
      {data !== undefined && (
        <p className="insights-note">
          {isFollowing
            ? 'While this list follows, each request is traced: its statements, waits, functions and rules.'
            : 'One request in 64 is traced, and 20 after a slow or a failed one of the same endpoint; in development mode all.'}
          {data.nodes.length > 1 && ` ${data.nodes.length} nodes have answered.`}
        </p>
      )}
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={10} />}
      {data?.items.length === 0 && (
        <EmptyState icon="insights" title="No requests">
          Each node keeps its last 2,000 requests. None of them fits these filters.
        </EmptyState>
      )}
      {data !== undefined && data.items.length > 0 && (
        <Card isFlush>
          <Table
            label="Requests"
            rows={data.items}
            columns={data.nodes.length > 1 ? [...columns, nodeColumn] : columns}
            keyOf={({ requestId }) => requestId}
            onOpen={({ requestId }) => navigate(requestPath(requestId))}
          />
        </Card>
      )}
    </>
  )
}
