/** The last requests of the node one by one: path, caller, outcome, and the same request as a command. */
import { useState } from 'react'
import { Link } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch, Switch } from '../../design/field.tsx'
import { formatTime } from '../../design/format-time.ts'
import { Card, Facts, Spacer, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { type RequestFilter, type SeenRequest, useRecentRequests } from './requests.ts'

const toneOf = (status: number): Tone => (status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good')

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
  { id: 'ms', title: 'ms', isNumeric: true, cell: ({ ms }) => ms.toFixed(1) },
  {
    id: 'caller',
    title: 'Caller',
    isOptional: true,
    cell: ({ caller }) => <span className="insights-caller">{caller}</span>,
  },
  { id: 'at', title: 'Time', isOptional: true, cell: ({ at }) => new Date(at).toLocaleTimeString('en-GB') },
]

const oneOf = <Value extends string>(options: readonly { readonly value: Value }[], text: string | null): Value =>
  options.find(({ value }) => value === text)?.value ?? (options[0]?.value as Value)

const textCharsMax = 200

export function Requests() {
  const url = useUrlState()
  const [isFollowing, setFollowing] = useState(true)
  const [open, setOpen] = useState<SeenRequest | null>(null)
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
  const only = (values: Readonly<Record<string, string>>): void => {
    setOpen(null)
    url.set(values)
  }
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
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={10} />}
      {data?.items.length === 0 && (
        <EmptyState icon="insights" title="No requests">
          The node keeps its last 2,000 requests. None of them fits these filters.
        </EmptyState>
      )}
      {data !== undefined && data.items.length > 0 && (
        <Card isFlush>
          <Table
            label="Requests"
            rows={data.items}
            columns={columns}
            keyOf={({ requestId }) => requestId}
            onOpen={setOpen}
          />
        </Card>
      )}
      <Dialog
        isOpen={open !== null}
        onClose={() => setOpen(null)}
        shape="panel"
        title={open === null ? '' : `${open.method} ${open.endpoint}`}
      >
        {open !== null && <Request request={open} onOnly={only} />}
      </Dialog>
    </>
  )
}

interface RequestProps {
  readonly request: SeenRequest
  readonly onOnly: (values: Readonly<Record<string, string>>) => void
}

function Request({ request, onOnly }: RequestProps) {
  const mayReadLogs = usePermits()('system:logs:*:read')
  const { requestId, at, status, slug, message, ms, caller, address, path, query, endpoint } = request
  return (
    <div className="stack">
      <Facts
        facts={[
          ['Time', formatTime(at)],
          [
            'Status',
            <Badge key="status" tone={toneOf(status)}>
              {status}
            </Badge>,
          ],
          ['Error', message === null ? '—' : `${message}${slug === null ? '' : ` (${slug})`}`],
          ['Duration', `${ms.toFixed(2)} ms`],
          [
            'Path',
            <code key="path" className="insights-wrapped">
              {path}
            </code>,
          ],
          [
            'Query',
            <code key="query" className="insights-wrapped">
              {query || '—'}
            </code>,
          ],
          [
            'Caller',
            <span key="caller" className="insights-wrapped">
              {caller}
            </span>,
          ],
          ['Address', address],
          ['Request', <code key="id">{requestId}</code>],
        ]}
      />
      {status === 403 || status === 401 || status === 404 ? (
        <p className="insights-note">
          An access rule may have refused this request. The <Link href="/rules">rules playground</Link> shows why a
          caller may or may not see a record.
        </p>
      ) : null}
      <CodeBlock label="The same request" code={commandOf(request)} />
      <div className="button-row insights-actions">
        <Button size="small" icon="filter" onClick={() => onOnly({ endpoint })}>
          Only this endpoint
        </Button>
        <Button size="small" icon="filter" onClick={() => onOnly({ caller })}>
          Only this caller
        </Button>
        {mayReadLogs && (
          <Link
            className="button button-plain button-small"
            href={`/logs?request=${encodeURIComponent(requestId)}&level=debug`}
          >
            Log lines
          </Link>
        )}
      </div>
    </div>
  )
}

/** A word of a shell command. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Credentials and bodies are never kept, so the command has placeholders for them. */
function commandOf({ method, path, query, caller }: SeenRequest): string {
  const url = `${location.origin}${path}${query === '' ? '' : `?${query}`}`
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quote(url)}`,
    ...(caller.startsWith('user:') ? ['-H "Authorization: Bearer $ACCESS_TOKEN"'] : []),
    ...(caller.startsWith('service:') ? ['-H "X-Platform-Service-Key: $PLINTH_SERVICE_KEY"'] : []),
    ...(method === 'GET' || method === 'DELETE' ? [] : [`-H 'Content-Type: application/json' -d '{}'`]),
  ].join(' \\\n  ')
}
