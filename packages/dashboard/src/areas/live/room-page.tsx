/** One room: its states as trees whose changes light up, its members, and its latest actions. */
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { usePermits } from '../../app/permissions.ts'
import { useUrlState } from '../../app/url-state.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format/number.ts'
import { Icon } from '../../design/icons.tsx'
import { JsonTree } from '../../design/json/tree.tsx'
import { Card, Page } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { useToasts } from '../../design/toast.tsx'
import { ActionLog } from './action-log.tsx'
import { Members } from './members.tsx'
import { hibernate, type Room, type RoomKey, useRoom } from './requests.ts'

export function RoomPage({ namespace, id }: RoomKey) {
  const url = useUrlState()
  const permits = usePermits()
  const mayChange = permits('rooms:namespace:*:write')
  const room = { namespace, id }
  const { data, error, refetch } = useRoom(room, url.get('players') ?? '')
  const back = (
    <Link href="/live" className="live-back">
      <Icon name="chevron-left" /> Rooms
    </Link>
  )
  if (data === undefined)
    return (
      <Page title={id} description={back}>
        {error === null ? <Skeleton lines={8} /> : <NotShown error={error} onRetry={() => void refetch()} />}
      </Page>
    )
  return (
    <Page title={id} description={back} actions={mayChange && <HibernateButton room={room} />}>
      {error !== null && <NotShown error={error} onRetry={() => void refetch()} />}
      <Summary namespace={namespace} room={data} />
      <div className="live-grid">
        <div className="live-column">
          <StateCard title="Shared state" hint="All members see it." name="shared" room={data} />
          <StateCard title="Server state" hint="Only the code of the room sees it." name="server" room={data} />
          <StateCard title="Metadata" hint="In lists of rooms." name="metadata" room={data} />
        </div>
        <div className="live-column">
          <Members room={room} view={data} mayKick={mayChange} mayAct={permits('rooms:namespace:*:act')} />
          <ActionLog actions={data.actions} />
        </div>
      </div>
    </Page>
  )
}

/** A room that is saved and out of memory is no fault: say so before the error. */
const NotShown = ({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) =>
  typeof error === 'object' && error !== null && 'status' in error && error.status === 404 ? (
    <EmptyState icon="live" title="This room is not in memory" action={<Button onClick={onRetry}>Look again</Button>}>
      It is loaded when a user joins it. Rooms without members are saved and leave memory.
    </EmptyState>
  ) : (
    <ErrorNote error={error} onRetry={onRetry} />
  )

const Summary = ({ namespace, room }: { readonly namespace: string; readonly room: Room }) => (
  <ul className="live-summary">
    <li>
      <Badge tone="accent">{namespace}</Badge>
    </li>
    <li>{formatCount(room.occupancy.activeMembers)} members</li>
    <li>{formatCount(room.occupancy.activeConnections)} connections</li>
    <li>{room.load.messagesPerSecond.toLocaleString('en', { maximumFractionDigits: 1 })} messages/s</li>
    <li>tick {formatDuration(room.load.tickMs)}</li>
    <li>{formatBytes(room.load.stateBytes)} of state</li>
  </ul>
)

interface StateCardProps {
  readonly title: string
  readonly hint: string
  readonly name: 'shared' | 'server' | 'metadata'
  readonly room: Room
}

const StateCard = ({ title, hint, name, room }: StateCardProps) => (
  <Card title={title} actions={<span className="live-quiet">{hint}</span>}>
    <JsonTree label={title} value={room[name]} />
    {room.previews.includes(name) && <p className="live-note">Large: long texts and later entries are left out.</p>}
  </Card>
)

function HibernateButton({ room }: { readonly room: RoomKey }) {
  const [, navigate] = useLocation()
  const toasts = useToasts()
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button onClick={() => setAsking(true)}>Hibernate…</Button>
      <ConfirmDialog
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title="Hibernate this room?"
        action="Hibernate"
        onConfirm={async () => {
          await hibernate(room)
          toasts.add({ title: 'Room saved and out of memory', tone: 'good' })
          navigate('/live')
        }}
      >
        The room is saved and leaves memory. It is loaded again when someone joins; with connected members, at once.
      </ConfirmDialog>
    </>
  )
}
