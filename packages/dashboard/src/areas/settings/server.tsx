/** The server as the configuration and the environment have set it up: environment, engines, limits and retention. */
import { Badge } from '../../design/badge.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatCount } from '../../design/format/number.ts'
import { Card, Facts } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { type Engine, type Retention, type ServerSettings, useServerSettings } from './requests.ts'

const units = [
  ['day', 24 * 60 * 60_000],
  ['hour', 60 * 60_000],
  ['minute', 60_000],
  ['second', 1000],
] as const

/** A span in its largest whole unit, such as `1 day` or `90 minutes`. */
function formatSpan(ms: number): string {
  const [unit, size] = units.find(([, one]) => ms >= one && ms % one === 0) ?? (['second', 1000] as const)
  const count = ms / size
  return `${formatCount(count)} ${unit}${count === 1 ? '' : 's'}`
}

const sizeUnits = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const

/** A size in the units of the configuration, such as `8 MiB`. */
function formatSize(bytes: number): string {
  const [unit, size] = sizeUnits.find(([, one]) => bytes >= one) ?? (['B', 1] as const)
  return `${(bytes / size).toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`
}

const Location = ({ engine: { kind, location } }: { readonly engine: Engine }) => (
  <>
    {kind}
    {location !== null && <code className="settings-location">{location}</code>}
  </>
)

export function Server() {
  const { data, error, refetch } = useServerSettings()
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={8} />
  return (
    <div className="stack">
      <p className="settings-lead">
        The configuration and the environment of the server decide these; change them there. Secrets are not shown.
      </p>
      <div className="settings-cards">
        <Card title="Environment">
          <Facts facts={environmentOf(data)} />
        </Card>
        <Card title="Engines">
          <Facts
            facts={[
              ['Databases', <Location key="sql" engine={data.engines.sql} />],
              ['Files', <Location key="blobs" engine={data.engines.blobs} />],
              ['Coordination', <Location key="cluster" engine={data.engines.cluster} />],
              ['Mail', <Location key="mail" engine={data.engines.mail} />],
            ]}
          />
        </Card>
      </div>
      <Card title="Retention" isFlush>
        <Table label="Retention" rows={data.retention} columns={retentionColumns} keyOf={({ id }) => id} />
      </Card>
      <div className="settings-cards">
        <Card title="Limits">
          <Facts facts={limitsOf(data)} />
        </Card>
        <Card title="Rate limits" isFlush>
          <Table label="Rate limits" rows={data.limits.rateLimits} columns={rateColumns} keyOf={({ group }) => group} />
        </Card>
      </div>
    </div>
  )
}

function environmentOf(data: ServerSettings): readonly (readonly [string, React.ReactNode])[] {
  const { project, appName, mode, version, runtime, publicUrl, listensOn, trustedProxy, logLevel } = data
  const { requiresMfa, roles } = data.dashboard
  return [
    ['Application', appName ?? project ?? 'Not named'],
    [
      'Mode',
      <Badge key="mode" tone={mode === 'release' ? 'bad' : 'neutral'}>
        {mode}
      </Badge>,
    ],
    ['Version', `Plinth ${version} on ${runtime}`],
    ['Public URL', publicUrl === null ? 'Not set' : <code>{publicUrl}</code>],
    ['Listens on', <code key="address">{listensOn}</code>],
    ['Trusted proxies', proxies[trustedProxy] ?? trustedProxy],
    ['Allowed origins', data.corsOrigins.length === 0 ? 'Its own' : data.corsOrigins.join(', ')],
    ['Second factor of administrators', requiresMfa ? 'Required' : 'Optional'],
    ['Dashboard roles', roles.join(', ')],
    ['Log level', logLevel],
  ]
}

const proxies: Readonly<Record<string, string>> = { none: 'None', hops: 'By number', networks: 'By network' }

const limitsOf = ({ limits }: ServerSettings): readonly (readonly [string, React.ReactNode])[] => [
  ['JSON response', formatSize(limits.responseBytes)],
  ['Writes of a caller per minute', formatSize(limits.writeBytes)],
  ['Sessions of a user', formatCount(limits.sessionsPerUser)],
  ['Shortest password', `${limits.passwordCharsMin} characters`],
  ['Processes for functions', formatCount(limits.functionHosts)],
  ['Memory of each', formatSize(limits.functionMemoryBytes)],
]

const rateColumns: readonly Column<ServerSettings['limits']['rateLimits'][number]>[] = [
  { id: 'group', title: 'Group', cell: ({ group }) => <code>{group}</code> },
  { id: 'requests', title: 'Requests', isNumeric: true, cell: ({ requests }) => formatCount(requests) },
  { id: 'window', title: 'Per', cell: ({ windowMs }) => formatSpan(windowMs) },
]

/** Titles, and what ends when the bound is reached. */
const stores: Readonly<Record<string, readonly [title: string, about: string]>> = {
  changes: ['Change log', 'Subscriptions that were away for longer read everything again'],
  audit: ['Audit log', 'The oldest entries are removed; the chain begins after them'],
  requestLog: ['Request log', 'Single requests; their counts per day stay'],
  events: ['Analytics events', 'Single events; their counts per day stay'],
  jobs: ['Finished jobs', 'Their input, attempts and result'],
  pushLog: ['Push log', 'The result of each device'],
  idempotency: ['Idempotency keys', 'A repeated write within it is answered from the first'],
  requests: ['Request inspector', 'In memory; empty after a restart'],
  logs: ['Log lines', 'In memory; standard output has all of them'],
}

const pers = { server: '', database: ' in each database', node: ' on each node' } as const

function boundOf({ retentionMs, bytesMax, itemsMax, per }: Retention): string {
  if (itemsMax === 0) return 'Switched off'
  const parts = [
    ...(retentionMs === null ? [] : [formatSpan(retentionMs)]),
    ...(bytesMax === null ? [] : [formatSize(bytesMax)]),
    ...(itemsMax === null ? [] : [`${formatCount(itemsMax)} entries`]),
  ]
  return `${parts.join(', at most ')}${pers[per]}`
}

const retentionColumns: readonly Column<Retention>[] = [
  {
    id: 'what',
    title: 'What',
    cell: ({ id }) => (
      <span className="settings-store">
        {stores[id]?.[0] ?? id}
        <small>{stores[id]?.[1]}</small>
      </span>
    ),
  },
  { id: 'kept', title: 'Kept', cell: (row) => <span className="settings-bound">{boundOf(row)}</span> },
  {
    id: 'option',
    title: 'Set by',
    isOptional: true,
    cell: ({ option }) => (option === null ? 'Fixed' : <code>{option}</code>),
  },
]
