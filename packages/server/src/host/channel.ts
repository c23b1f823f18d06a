/** The channel to the server. */
import type { FromHost } from '../engines/hosts/protocol.ts'

/** Ends the process; the application's code cannot call it. */
export const exit = process.exit.bind(process)

/** Sends a message. Without a server, the process ends. */
export function send(message: FromHost): void {
  if (!process.connected) exit(0)
  process.send?.(message)
}
