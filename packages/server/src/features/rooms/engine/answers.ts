/** The texts that commands lead to: results and refusals for their sender, signals for the others. */
import { formatDatetime } from '../../../base/text/datetime.ts'
import { jsonText } from './json.ts'
import type { RoomCommand, RoomNetwork } from './ports.ts'

/** Why sockets are closed. CONTRACT "Rooms". */
export const roomCloseCodes = { refused: 4003, kicked: 4004, left: 4005, failed: 1011, restarting: 1012 } as const

export const errorText = (code: string, message: string): string => JSON.stringify({ type: 'error', code, message })

/**
 * The message to the sender of an action, from what is kept of it: `{"result":…,"actionType":…}`, or the members of an
 * error.
 */
export const answerText = (requestId: string, body: string): string =>
  `{"type":"action_${body.startsWith('{"result":') ? 'result' : 'error'}","requestId":${jsonText(requestId)},` +
  body.slice(1)

/** Tells the sender of a command that it was not begun. */
export function refuseCommand(network: RoomNetwork, command: RoomCommand, code: string, message: string): void {
  if ('connectionId' in command) network.send(command.connectionId, [refusalText(command, code, message)])
}

/** In the form that the sender waits for. */
function refusalText(command: RoomCommand, code: string, message: string): string {
  if (command.type === 'act') {
    const { requestId, actionType } = command
    return JSON.stringify({ type: 'action_error', requestId, actionType, code, message })
  }
  if (command.type === 'signal' && command.requestId !== null)
    return JSON.stringify({ type: 'signal_error', requestId: command.requestId, code, message })
  return errorText(code, message)
}

/** A signal as it is delivered, with the member it is from. */
export function signalText(
  userId: string,
  { connectionId, event, payload }: Extract<RoomCommand, { type: 'signal' }>,
  nowMs: number,
): string {
  const meta = { memberId: userId, userId, connectionId, sentAt: formatDatetime(nowMs), serverSent: false }
  return JSON.stringify({ type: 'signal', event, payload: payload ?? null, memberId: userId, meta })
}
