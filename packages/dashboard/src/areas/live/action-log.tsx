/** The latest actions of a room, newest first. */
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatDuration } from '../../design/format/number.ts'
import { formatTime } from '../../design/format-time.ts'
import { Card } from '../../design/page.tsx'
import type { RoomAction } from './requests.ts'

/** Actions have no id: equal ones at one time differ by their number among these. */
function withKeys(actions: readonly RoomAction[]): (readonly [key: string, action: RoomAction])[] {
  const seen = new Map<string, number>()
  return actions.map((action) => {
    const base = `${action.at} ${action.userId} ${action.actionType}`
    const count = (seen.get(base) ?? 0) + 1
    seen.set(base, count)
    return [`${base} ${count}`, action]
  })
}

export function ActionLog({ actions }: { readonly actions: readonly RoomAction[] }) {
  return (
    <Card title="Latest actions">
      {actions.length === 0 ? (
        <EmptyState icon="code" title="No actions yet">
          What members send with <code>room.send</code> is listed here, with what it took and why it failed.
        </EmptyState>
      ) : (
        <ol className="live-actions">
          {withKeys(actions)
            .reverse()
            .map(([key, action]) => (
              <li key={key} className={action.error === null ? undefined : 'is-failed'}>
                <time dateTime={action.at} title={formatTime(action.at)}>
                  {new Date(action.at).toLocaleTimeString('en-GB')}
                </time>
                <strong>{action.actionType}</strong>
                <span className="live-id">{action.userId}</span>
                {action.sentBy !== null && <Badge tone="warn">sent by {action.sentBy}</Badge>}
                <span className="live-quiet">{formatDuration(action.durationMs)}</span>
                {action.payload !== null && <code className="live-payload">{action.payload}</code>}
                {action.error !== null && <span className="live-failure">{action.error}</span>}
              </li>
            ))}
        </ol>
      )}
    </Card>
  )
}
