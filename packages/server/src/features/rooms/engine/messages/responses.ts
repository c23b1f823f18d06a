/** Messages in response to commands: results and errors for the sender, signals for other members. */
import { formatDatetime } from '../../../../base/text/datetime.ts'
import type { RoomCommand, RoomNetwork } from '../ports.ts'
import { jsonText } from '../state/json.ts'
import { assemble, encode, errorText, type RoomErrorCode, type RoomText } from './messages.ts'

/** The response to an action, from its kept body: `{"result":…,"actionType":…}`, or the members of an error. */
export const responseText = (requestId: string, body: string): RoomText =>
  assemble(
    body.startsWith('{"result":') ? 'action_result' : 'action_error',
    `"requestId":${jsonText(requestId)},${body.slice(1, -1)}`,
  )

/** Reports to the sender of a command that it was rejected. */
export function rejectCommand(network: RoomNetwork, command: RoomCommand, code: RoomErrorCode, message: string): void {
  if ('connectionId' in command) network.send(command.connectionId, [rejectionText(command, code, message)])
}

/** Reports to the sender of a command that a queue of the room is full. */
export const rejectOverload = (network: RoomNetwork, command: RoomCommand): void =>
  rejectCommand(network, command, 'RATE_LIMITED', 'The room is overloaded; retry later')

/** The error in the form that answers the command. */
function rejectionText(command: RoomCommand, code: RoomErrorCode, message: string): RoomText {
  if (command.type === 'act') {
    const { requestId, actionType } = command
    return encode({ type: 'action_error', requestId, actionType, code, message })
  }
  if (command.type === 'signal' && command.requestId !== null)
    return encode({ type: 'signal_error', requestId: command.requestId, code, message })
  return errorText(code, message)
}

/** A signal as delivered, with its sender. */
export function signalText(
  userId: string,
  { connectionId, event, payload }: Extract<RoomCommand, { type: 'signal' }>,
  nowMs: number,
): RoomText {
  const meta = { memberId: userId, userId, connectionId, sentAt: formatDatetime(nowMs), serverSent: false }
  return encode({ type: 'signal', event, payload: payload ?? null, memberId: userId, meta })
}
