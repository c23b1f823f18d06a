/** The channel to the server. */
import { createOutbox, type Packet } from '../engines/hosts/outbox.ts'
import { encodeFromHost, type FromHost, hasBytes, sizeOf } from '../engines/hosts/protocol.ts'

/** Ends the process; the application's code cannot call it. */
export const exit = process.exit.bind(process)

/** Without a server, the process ends. */
function write(packet: Packet<FromHost>): void {
  if (!process.connected) exit(0)
  process.send?.(packet)
}

const outbox = createOutbox<FromHost>({ hasBytes, sizeOf, encode: encodeFromHost, send: write })

/** Sends a message at the end of the tick. */
export const send = outbox.post

/** Sends a message at once: before code that may never return to the event loop, or where no other would join it. */
export const sendNow = outbox.send
