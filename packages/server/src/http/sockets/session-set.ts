/** The open sessions of one kind of socket. */
import type { SocketHandler } from './socket-handler.ts'

export interface SessionSet<Session extends SocketHandler> extends Iterable<Session> {
  /** Adds a session until its socket is closed. Returns the same object, so that its accessors keep working. */
  add(session: Session): Session
}

export function createSessionSet<Session extends SocketHandler>(): SessionSet<Session> {
  const sessions = new Set<Session>()
  return {
    add(session) {
      const onClose = session.onClose.bind(session)
      sessions.add(session)
      return Object.assign(session, {
        onClose() {
          sessions.delete(session)
          onClose()
        },
      })
    },
    [Symbol.iterator]: () => sessions.values(),
  }
}
