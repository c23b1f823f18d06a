/** The open sessions of one kind of socket. */
import type { SocketHandler } from './socket-handler.ts'

export interface SessionSet<Session extends SocketHandler> extends Iterable<Session> {
  /** Keeps the session until its socket is closed. Gives the same object, so that its accessors stay what they are. */
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
