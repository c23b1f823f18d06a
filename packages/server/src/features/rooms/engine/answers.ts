/** The messages that commands lead to: results and errors for their sender, signals for other members. */
import { formatDatetime } from '../../../base/text/datetime.ts'
import { jsonText } from './json.ts'
import { assemble, encode, errorText, type RoomErrorCode, type RoomText } from './messages.ts'
import type { RoomCommand, RoomNetwork } from './ports.ts'

/**
 * The message to the sender of an action, from what is kept of it: `{"result":…,"actionType":…}`, or the members of an
 * error.
 */
export const answerText = (requestId: string, body: string): RoomText =>
  assemble(
    body.startsWith('{"result":') ? 'action_result' : 'action_error',
    `"requestId":${jsonText(requestId)},${body.slice(1, -1)}`,
  )

/** Tells the sender of a command that it was not begun. */
export function refuseCommand(network: RoomNetwork, command: RoomCommand, code: RoomErrorCode, message: string): void {
  if ('connectionId' in command) network.send(command.connectionId, [refusalText(command, code, message)])
}

/** In the form that the sender waits for. */
function refusalText(command: RoomCommand, code: RoomErrorCode, message: string): RoomText {
  if (command.type === 'act') {
    const { requestId, actionType } = command
    return encode({ type: 'action_error', requestId, actionType, code, message })
  }
  if (command.type === 'signal' && command.requestId !== null)
    return encode({ type: 'signal_error', requestId: command.requestId, code, message })
  return errorText(code, message)
}

/** A signal as it is delivered, with the member it is from. */
export function signalText(
  userId: string,
  { connectionId, event, payload }: Extract<RoomCommand, { type: 'signal' }>,
  nowMs: number,
): RoomText {
  const meta = { memberId: userId, userId, connectionId, sentAt: formatDatetime(nowMs), serverSent: false }
  return encode({ type: 'signal', event, payload: payload ?? null, memberId: userId, meta })
}
