/** The functions with what runs them, how they fare, and the processes that run them. */
import { useLocation } from 'wouter'
import { Badge } from '../../design/badge.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatBytes, formatCount } from '../../design/format/number.ts'
import { formatAge, formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { CodePage, linesHref } from './code-page.tsx'
import { type Hosts, type ServerFunction, useFunctions, useHosts } from './requests.ts'

const columns: readonly Column<ServerFunction>[] = [
  {
    id: 'name',
    title: 'Function',
    cell: ({ name, location }) => (
      <span className="table-name">
        <strong>{name}</strong>
        {location !== null && <span>{location}</span>}
      </span>
    ),
  },
  { id: 'kind', title: 'Kind', cell: ({ kind }) => <Badge>{kind}</Badge> },
  { id: 'trigger', title: 'Runs', isOptional: true, cell: ({ trigger }) => <code>{trigger}</code> },
  {
    id: 'state',
    title: 'State',
    cell: ({ state }) => <Badge tone={state === 'failing' ? 'bad' : 'good'}>{state}</Badge>,
  },
  { id: 'calls', title: 'Calls', isNumeric: true, isOptional: true, cell: ({ calls }) => formatCount(calls) },
  {
    id: 'failures',
    title: 'Failures',
    isNumeric: true,
    isOptional: true,
    cell: ({ failures }) => formatCount(failures),
  },
  {
    id: 'error',
    title: 'Last error',
    isOptional: true,
    cell: ({ lastError }) =>
      lastError && (
        <span className="table-name">
          <span className="code-failure">{lastError.message}</span>
          <span title={formatTime(lastError.at)}>
            {lastError.location !== null && `${lastError.location}, `}
            {formatAge(lastError.at)}
          </span>
        </span>
      ),
  },
]

export function Functions() {
  const [, navigate] = useLocation()
  const query = useFunctions()
  const { data: hosts } = useHosts()
  const functions = query.data ?? []
  return (
    <CodePage
      current="functions"
      description="What your code does on the server. Counts begin with this node."
      query={query}
    >
      {query.data?.length === 0 && <NoFunctions />}
      {functions.length > 0 && (
        <Card isFlush>
          <Table
            label="Functions"
            rows={functions}
            columns={columns}
            keyOf={({ name }) => name}
            onOpen={({ name }) => navigate(linesHref({ function: name }))}
          />
        </Card>
      )}
      {functions.length > 0 && hosts !== undefined && <HostsCard hosts={hosts} />}
    </CodePage>
  )
}

const hostColumns: readonly Column<Hosts['items'][number]>[] = [
  { id: 'pid', title: 'Process', cell: ({ pid }) => pid },
  {
    id: 'state',
    title: 'State',
    cell: ({ state }) => (
      <Badge tone={state === 'ready' ? 'good' : state === 'blocked' ? 'bad' : 'neutral'}>{state}</Badge>
    ),
  },
  { id: 'calls', title: 'Under way', isNumeric: true, cell: ({ invocations }) => formatCount(invocations) },
  {
    id: 'memory',
    title: 'Memory',
    isNumeric: true,
    cell: ({ memoryBytes }) => (memoryBytes === null ? 'unknown' : formatBytes(memoryBytes)),
  },
  { id: 'started', title: 'Started', isOptional: true, cell: ({ startedAt }) => formatAge(startedAt) },
]

const HostsCard = ({ hosts: { items, memoryBytesMax, waiting, restarts, lastEnd } }: { readonly hosts: Hosts }) => (
  <Card
    title="Processes of this node"
    isFlush
    actions={
      <span className="code-quiet">
        {formatCount(waiting)} calls wait · {formatCount(restarts)} unexpected ends · at most{' '}
        {formatBytes(memoryBytesMax)} each
      </span>
    }
  >
    <Table label="Processes" rows={items} columns={hostColumns} keyOf={({ pid }) => String(pid)} />
    {lastEnd !== null && (
      <p className="code-note">
        The last unexpected end was {formatAge(lastEnd.at)}: {lastEnd.reason}
      </p>
    )}
  </Card>
)

const sample = `import { functionsFor } from 'plinth/functions'
import type config from '../plinth.config'

const { rpc } = functionsFor<typeof config>()

export const greet = rpc({ caller: 'anyone' }, (name: string) => \`Hello \${name}\`)`

const NoFunctions = () => (
  <EmptyState icon="code" title="No functions yet">
    <p>
      Functions answer requests, check writes, follow changes and run on schedules. Write one, and the server serves it
      at <code>POST /api/fn/greet</code>:
    </p>
    <div className="code-sample">
      <CodeBlock code={sample} label="functions/index.ts" />
    </div>
  </EmptyState>
)
