/** Sockets, subscriptions by channel, and the nodes that serve them. */
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes, formatCount } from '../../design/format/number.ts'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card, type Fact, Facts, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { LiveTabs } from './live-tabs.tsx'
import { type Channel, type ServerNode, useNodes } from './requests.ts'

const nodeColumns: readonly Column<ServerNode>[] = [
  {
    id: 'node',
    title: 'Node',
    cell: ({ host, pid, version }) => (
      <span className="table-name">
        <strong>{host}</strong>
        <span>
          {version}, process {pid}
        </span>
      </span>
    ),
  },
  {
    id: 'cpu',
    title: 'Processor',
    isNumeric: true,
    cell: ({ load }) => `${Math.round(load.cpu * 100)} %`,
  },
  { id: 'memory', title: 'Memory', isNumeric: true, cell: ({ load }) => formatBytes(load.memoryBytes) },
  {
    id: 'sockets',
    title: 'Sockets',
    isNumeric: true,
    cell: ({ sockets }) => formatCount(sockets.open),
  },
  {
    id: 'subscriptions',
    title: 'Subscriptions',
    isNumeric: true,
    isOptional: true,
    cell: ({ subscriptions }) => formatCount(subscriptions.subscriptions),
  },
  { id: 'rooms', title: 'Rooms', isNumeric: true, isOptional: true, cell: ({ rooms }) => formatCount(rooms.rooms) },
  {
    id: 'started',
    title: 'Started',
    isOptional: true,
    cell: ({ startedAt }) => <span title={formatTime(startedAt)}>{formatAge(startedAt)}</span>,
  },
  {
    id: 'leases',
    title: 'Leases',
    isOptional: true,
    cell: ({ leases }) => <span className="live-leases">{leases.join(', ')}</span>,
  },
]

const channelColumns: readonly Column<Channel>[] = [
  { id: 'channel', title: 'Channel', cell: ({ channel }) => <code className="live-id">{channel}</code> },
  {
    id: 'subscribers',
    title: 'Subscribers',
    isNumeric: true,
    cell: ({ subscribers }) => formatCount(subscribers),
  },
]

export function Connections() {
  const { data, error, refetch } = useNodes()
  return (
    <Page
      title="Live"
      description="Sockets and subscriptions of all nodes, read every two seconds."
      tabs={<LiveTabs current="connections" />}
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && (
        <div className="live-column">
          <Totals nodes={data.items} />
          <Card title="Nodes" isFlush>
            <Table label="Nodes" rows={data.items} columns={nodeColumns} keyOf={({ id }) => id} />
          </Card>
          <Card title="Channels with the most subscribers" isFlush={data.channels.length > 0}>
            {data.channels.length > 0 ? (
              <Table label="Channels" rows={data.channels} columns={channelColumns} keyOf={({ channel }) => channel} />
            ) : (
              <NoSubscriptions />
            )}
          </Card>
          {data.truncated && <p className="live-note">There are more than fit in one answer.</p>}
        </div>
      )}
    </Page>
  )
}

function Totals({ nodes }: { readonly nodes: readonly ServerNode[] }) {
  const sum = (measure: (node: ServerNode) => number): string =>
    formatCount(nodes.reduce((total, node) => total + measure(node), 0))
  const totals: readonly Fact[] = [
    ['Open sockets', sum(({ sockets }) => sockets.open)],
    ['Signing in', sum(({ sockets }) => sockets.pending)],
    ['Subscriptions', sum(({ subscriptions }) => subscriptions.subscriptions)],
    ['Live queries', sum(({ subscriptions }) => subscriptions.queries)],
    ['Paused', sum(({ subscriptions }) => subscriptions.paused)],
    ['In rooms', sum(({ rooms }) => rooms.connections)],
  ]
  return <Facts facts={totals} className="live-totals" />
}

const subscribing = `const list = plinth.db('shared').posts.sort('title').live()
list.subscribe(() => console.log(list.current.items))`

const NoSubscriptions = () => (
  <EmptyState icon="live" title="No subscriptions yet">
    <p>Applications follow records as they change:</p>
    <div className="live-sample">
      <CodeBlock code={subscribing} label="In your application" />
    </div>
  </EmptyState>
)
