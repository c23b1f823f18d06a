/** The mailbox of a room: a bounded queue of commands, first in, first out. */
import { roomInboxBytesMax, roomInboxCommandsMax } from '../../../limits/rooms.ts'
import type { RoomCommand } from './ports.ts'

const bytesOf = (command: RoomCommand): number => ('bytes' in command ? command.bytes : 0)

export class Inbox {
  private commands: RoomCommand[] = []
  private first = 0
  private bytes = 0

  get size(): number {
    return this.commands.length - this.first
  }

  /** False when the queue is full. Joins and leaves are always accepted: the number of sockets bounds them. */
  push(command: RoomCommand): boolean {
    const bytes = bytesOf(command)
    if (bytes > 0 && (this.size >= roomInboxCommandsMax || this.bytes + bytes > roomInboxBytesMax)) return false
    this.commands.push(command)
    this.bytes += bytes
    return true
  }

  shift(): RoomCommand | undefined {
    const command = this.commands[this.first]
    if (!command) return undefined
    this.first += 1
    this.bytes -= bytesOf(command)
    if (this.first === this.commands.length) {
      this.commands.length = 0
      this.first = 0
    } else if (this.first > roomInboxCommandsMax) {
      this.commands = this.commands.slice(this.first)
      this.first = 0
    }
    return command
  }

  /** Removes and returns all commands. */
  drain(): RoomCommand[] {
    const commands = this.commands.slice(this.first)
    this.commands = []
    this.first = 0
    this.bytes = 0
    return commands
  }
}
