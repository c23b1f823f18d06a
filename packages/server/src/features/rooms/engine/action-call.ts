/**
 * One run of an action: calls its handler, then keeps the response, so that a repeated request receives it again, and
 * sends it. `command-processor` decides whether an action runs.
 */
import { isLongerThan } from '../../../base/text/text.ts'
import type { RoomCode } from '../../../config/sections/rooms/room-code.ts'
import { actionResultBytesMax } from '../../../limits/rooms.ts'
import { ActionError } from './handlers/action-error.ts'
import type { HandlerContext } from './handlers/handler-context.ts'
import type { HandlerCall } from './handlers/handler-executor.ts'
import type { EngineCounts } from './messages/fanout.ts'
import { responseText } from './messages/responses.ts'
import type { Journal } from './persistence/journal.ts'
import type { RoomData } from './persistence/room-data.ts'
import type { Connection } from './players.ts'
import type { RoomCommand, RoomsDeps } from './ports.ts'
import { type RecentActions, shownPayload } from './recent-actions.ts'
import { jsonText } from './state/json.ts'

export type ActCommand = Extract<RoomCommand, { type: 'act' }>

type ActionHandler = NonNullable<RoomCode['actions']>[string]

export interface ActionCallDeps extends Pick<RoomsDeps, 'network' | 'clock' | 'elapsedMs'> {
  readonly data: RoomData
  readonly journal: Journal
  readonly counts: EngineCounts
}

/** An object with methods instead of closures, since rooms run thousands of actions per second. */
export class ActionCall implements HandlerCall {
  readonly isReported = true
  private readonly startedAtMs: number
  /** Before the handler runs, which may change the payload. */
  private readonly shownPayload: string | null
  private body = ''

  constructor(
    private readonly deps: ActionCallDeps,
    private readonly recent: RecentActions,
    private readonly sender: Pick<Connection, 'id' | 'player'>,
    private readonly command: ActCommand,
    private readonly handler: ActionHandler,
  ) {
    this.startedAtMs = deps.elapsedMs()
    this.shownPayload = shownPayload(command.payload, command.bytes)
  }

  get name(): string {
    return `action ${this.command.actionType}`
  }

  invoke(context: HandlerContext): unknown {
    const { handler } = this
    return handler(context.room, context.handleOf(this.sender.player), this.command.payload)
  }

  accept(value: unknown): void {
    this.body = resultBody(this.command.actionType, value)
  }

  done(error: { readonly code: string; readonly message: string } | null): void {
    const { network, clock, elapsedMs, data, journal, counts } = this.deps
    const { id, player } = this.sender
    const { actionType, requestId, as } = this.command
    if (error) this.body = JSON.stringify({ actionType, ...error })
    const endedAtMs = elapsedMs()
    journal.addText(`["result",${data.results.keep(player.userId, requestId, this.body, endedAtMs)}]`)
    network.send(id, [responseText(requestId, this.body)])
    counts.actions += 1
    this.recent.add({
      atMs: clock.now(),
      userId: player.userId,
      actionType,
      payload: this.shownPayload,
      durationMs: endedAtMs - this.startedAtMs,
      error: error?.message ?? null,
      sentBy: as?.by ?? null,
    })
  }
}

/** The kept body of an `action_result`. Values without a JSON form, such as functions, become null. */
function resultBody(actionType: string, value: unknown): string {
  const body = `{"result":${JSON.stringify(value) ?? 'null'},"actionType":${jsonText(actionType)}}`
  if (isLongerThan(actionResultBytesMax, body))
    throw new ActionError('ACTION_FAILED', `The result of an action must be at most ${actionResultBytesMax} bytes`)
  return body
}
