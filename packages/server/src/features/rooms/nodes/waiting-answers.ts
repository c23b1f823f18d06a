/**
 * Answers to actions that wait for the next tick, for sockets with the capability `batch`. Sent just before the deltas
 * of the tick, they are written together with them, and cost no write of their own.
 */
import { roomAnswersWaitingMax, roomWaitingAnswerCharsMax } from '../../../limits/rooms.ts'
import type { RoomText } from '../engine/messages/messages.ts'

export interface AnsweredSocket {
  /** The name of its room, made once. */
  readonly roomName: string
  /** Answers to actions that wait for the next tick; null if they do not wait (`batch`). */
  answers: RoomText[] | null
}

const isAnswer = (text: RoomText): boolean => text.startsWith('{"type":"action_')

export class WaitingAnswers<Socket extends AnsweredSocket> {
  /** Sockets that may have answers, by room. */
  readonly #rooms = new Map<string, Set<Socket>>()
  readonly #send: (socket: Socket, answers: readonly RoomText[]) => void

  constructor(send: (socket: Socket, answers: readonly RoomText[]) => void) {
    this.#send = send
  }

  /** Keeps an answer. Too many or a long one are sent at once, in order. False for any other message. */
  add(socket: Socket, answers: RoomText[], text: RoomText): boolean {
    if (!isAnswer(text)) return false
    answers.push(text)
    if (answers.length >= roomAnswersWaitingMax || text.length > roomWaitingAnswerCharsMax) this.sendOf(socket)
    else if (answers.length === 1) this.#socketsOf(socket.roomName).add(socket)
    return true
  }

  /** Sends the answers of a socket. Called before anything else is sent to it, so that the order stays the same. */
  sendOf(socket: Socket): void {
    const { answers } = socket
    if (!answers || answers.length === 0) return
    socket.answers = []
    this.#send(socket, answers)
  }

  sendOfRoom(name: string): void {
    const sockets = this.#rooms.get(name)
    if (!sockets) return
    this.#rooms.delete(name)
    for (const socket of sockets) this.sendOf(socket)
  }

  sendAll(): void {
    for (const name of this.#rooms.keys()) this.sendOfRoom(name)
  }

  #socketsOf(name: string): Set<Socket> {
    let sockets = this.#rooms.get(name)
    if (!sockets) {
      sockets = new Set()
      this.#rooms.set(name, sockets)
    }
    return sockets
  }
}
