/** The players of a room with their states, and the removal of one. */
import { useState } from 'react'
import { Link } from 'wouter'
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { ConfirmDialog } from '../../design/dialog.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount } from '../../design/format/number.ts'
import { JsonTree } from '../../design/json/tree.tsx'
import { Card } from '../../design/page.tsx'
import { useToasts } from '../../design/toast.tsx'
import { type Room, type RoomKey, type RoomPlayer, useKick } from './requests.ts'
import { SendAsPlayer } from './send-as-player.tsx'

export interface MembersProps {
  readonly room: RoomKey
  readonly view: Room
  readonly mayKick: boolean
  /** Whether actions may be sent in the name of members. */
  readonly mayAct: boolean
}

export function Members({ room, view, mayKick, mayAct }: MembersProps) {
  const url = useUrlState()
  const toasts = useToasts()
  const kick = useKick(room)
  const [actor, setActor] = useState<string | null>(null)
  const [kicked, setKicked] = useState<string | null>(null)
  const isLaterPage = url.get('players') !== null
  return (
    <Card title="Members">
      {view.players.length === 0 && (
        <EmptyState icon="users" title="This room is empty">
          Members appear when they join, with the state that only they see.
        </EmptyState>
      )}
      <ul className="live-members">
        {view.players.map((player) => (
          <Member
            key={player.userId}
            player={player}
            isCut={view.previews.includes(`player:${player.userId}`)}
            onAct={mayAct ? () => setActor(player.userId) : null}
            onKick={mayKick ? () => setKicked(player.userId) : null}
          />
        ))}
      </ul>
      {(isLaterPage || view.cursor !== null) && (
        <div className="button-row">
          {isLaterPage && <Button onClick={() => url.set({ players: null })}>First members</Button>}
          {view.cursor !== null && <Button onClick={() => url.set({ players: view.cursor })}>Next members</Button>}
        </div>
      )}
      {actor !== null && <SendAsPlayer room={room} userId={actor} onClose={() => setActor(null)} />}
      <ConfirmDialog
        isOpen={kicked !== null}
        onClose={() => setKicked(null)}
        title="Remove this member?"
        action="Kick"
        onConfirm={async () => {
          if (kicked !== null) await kick.mutateAsync(kicked)
          toasts.add({ title: 'Member removed', tone: 'good' })
        }}
      >
        <code className="live-id">{kicked}</code> leaves the room on every device. Unless your rule for joining prevents
        it, the user can join again.
      </ConfirmDialog>
    </Card>
  )
}

interface MemberProps {
  readonly player: RoomPlayer
  readonly isCut: boolean
  readonly onAct: (() => void) | null
  readonly onKick: (() => void) | null
}

const Member = ({ player: { userId, connections, state }, isCut, onAct, onKick }: MemberProps) => (
  <li>
    <div className="live-member">
      <Link href={`/users/${encodeURIComponent(userId)}`} className="live-id">
        {userId}
      </Link>
      <span className="live-quiet">
        {formatCount(connections)} {connections === 1 ? 'connection' : 'connections'}
      </span>
      {onAct !== null && (
        <Button size="small" aria-label={`Send as ${userId}`} onClick={onAct}>
          Send as…
        </Button>
      )}
      {onKick !== null && (
        <Button size="small" aria-label={`Kick ${userId}`} onClick={onKick}>
          Kick…
        </Button>
      )}
    </div>
    <JsonTree label={`State of ${userId}`} value={state} />
    {isCut && <p className="live-note">Large: long texts and later entries are left out.</p>}
  </li>
)
