/** The rooms in memory on all nodes, those with the most load first. */
import { useLocation } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format/number.ts'
import { Card, Page, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { type Column, Table } from '../../design/table.tsx'
import { LiveTabs } from './live-tabs.tsx'
import { type ListedRoom, type RoomKey, roomsListedMax, useRooms } from './requests.ts'

const columns: readonly Column<ListedRoom>[] = [
  {
    id: 'room',
    title: 'Room',
    cell: ({ namespace, roomId }) => (
      <span className="table-name">
        <strong>{roomId}</strong>
        <span>{namespace}</span>
      </span>
    ),
  },
  { id: 'players', title: 'Players', isNumeric: true, cell: ({ occupancy }) => formatCount(occupancy.activeMembers) },
  {
    id: 'messages',
    title: 'Messages/s',
    isNumeric: true,
    cell: ({ load }) => load.messagesPerSecond.toLocaleString('en', { maximumFractionDigits: 1 }),
  },
  { id: 'tick', title: 'Tick', isNumeric: true, isOptional: true, cell: ({ load }) => formatDuration(load.tickMs) },
  { id: 'state', title: 'State', isNumeric: true, isOptional: true, cell: ({ load }) => formatBytes(load.stateBytes) },
  {
    id: 'node',
    title: 'Node',
    isOptional: true,
    cell: ({ node }) => (node === null ? <span className="live-quiet">this one</span> : <code>{node}</code>),
  },
]

const sorts = [
  { value: 'load', label: 'Most messages' },
  { value: 'tick', label: 'Longest ticks' },
  { value: 'players', label: 'Most players' },
  { value: 'state', label: 'Largest state' },
  { value: 'name', label: 'By name' },
] as const
type Sort = (typeof sorts)[number]['value']

const sortOf = (text: string | null): Sort => sorts.find(({ value }) => value === text)?.value ?? 'load'

/** What each sort compares; the order of the server is that by name. */
const measures: Readonly<Record<Sort, (room: ListedRoom) => number>> = {
  load: ({ load }) => load.messagesPerSecond,
  tick: ({ load }) => load.tickMs,
  players: ({ occupancy }) => occupancy.activeMembers,
  state: ({ load }) => load.stateBytes,
  name: () => 0,
}

export const roomHref = ({ namespace, id }: RoomKey): string => `/live/room?${new URLSearchParams({ namespace, id })}`

const everyNamespace = '*'

export function RoomList() {
  const [, navigate] = useLocation()
  const url = useUrlState()
  const namespace = url.get('namespace') ?? ''
  const sort = sortOf(url.get('sort'))
  const { data, error, refetch } = useRooms(namespace)
  // With a namespace chosen, what the others are called comes from the list of all.
  const { data: all } = useRooms('')
  const names = new Set([...(all?.rooms ?? []).map((room) => room.namespace), ...(namespace === '' ? [] : [namespace])])
  const measure = measures[sort]
  const rooms = [...(data?.rooms ?? [])].sort((one, other) => measure(other) - measure(one))
  return (
    <Page
      title="Live"
      description="The rooms in memory on all nodes, read every two seconds."
      tabs={<LiveTabs current="rooms" />}
    >
      <Toolbar label="Rooms">
        <Select
          className="live-select"
          label="Namespace"
          value={namespace === '' ? everyNamespace : namespace}
          options={[
            { value: everyNamespace, label: 'All namespaces' },
            ...[...names].sort().map((name) => ({ value: name, label: name })),
          ]}
          onChange={(next) => url.set({ namespace: next === everyNamespace ? null : next })}
        />
        <Select
          className="live-select"
          label="Order"
          value={sort}
          options={sorts}
          onChange={(next) => url.set({ sort: next === 'load' ? null : next }, { replace: true })}
        />
      </Toolbar>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data?.rooms.length === 0 && <NoRooms />}
      {rooms.length > 0 && (
        <Card isFlush>
          <Table
            label="Rooms"
            rows={rooms}
            columns={columns}
            keyOf={(room) => JSON.stringify([room.namespace, room.roomId])}
            onOpen={(room) => navigate(roomHref({ namespace: room.namespace, id: room.roomId }))}
          />
        </Card>
      )}
      {data?.cursor && (
        <p className="live-note">
          The first {formatCount(roomsListedMax)} rooms by name are compared. Choose a namespace to see fewer.
        </p>
      )}
    </Page>
  )
}

const definition = `rooms: {
  lobby: {
    access: { join: (auth) => auth !== null },
    actions: {
      write(room, player, text) {
        room.shared.last = { by: player.id, text }
      },
    },
  },
},`
const joining = `const room = plinth.room('lobby', 'first')
await room.join()
await room.send('write', 'hello')`

const NoRooms = () => (
  <EmptyState icon="live" title="No room is in memory">
    <p>
      A room is state that its members share, changed by actions on the server. It appears here when the first user
      joins it, and leaves memory some time after the last one has left.
    </p>
    <div className="live-sample">
      <CodeBlock code={definition} label="plinth.config.ts" />
      <CodeBlock code={joining} label="In your application" />
    </div>
  </EmptyState>
)
