/** `plinth rooms`: lists and manages the rooms of a running server. */
import { notFound } from '../../errors.ts'
import type { RoomKey } from '../../features/rooms/engine/ports.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { findRoomClient, type ListedRoom, type RoomClient } from '../room-client.ts'
import { configOptions } from '../serve.ts'

export const roomsCommand: Command = {
  name: 'rooms',
  summary: 'List or show rooms, kick a player, or hibernate a room',
  operands: ['<action>', '[room]', '[userId]'],
  options: {
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `Actions; a room is named by its namespace and id, such as game/lobby:
  list                     The rooms in memory on all nodes, with their players
  show <room>              Its states, players and latest actions, as JSON
  kick <room> <userId>     Remove a player; the join rule decides about rejoining
  hibernate <room>         Save it and drop it from memory; it is loaded again at once
                           if players are connected, otherwise at the next join

Calls a running server with its service key. For a server on PostgreSQL, give --url and
PLINTH_SERVICE_KEY.`,
  run,
}

type Work = (client: RoomClient, terminal: Terminal) => Promise<void>

interface Action {
  /** Required operands. */
  readonly needs: readonly ('room' | 'userId')[]
  readonly act: (room: RoomKey, userId: string) => Work
}

/** A count with its noun. */
const countOf = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const lineOf = ({ namespace, roomId, occupancy: { activeMembers, activeConnections } }: ListedRoom): string =>
  [`${namespace}/${roomId}`, countOf(activeMembers, 'player'), countOf(activeConnections, 'connection')].join('  ')

const actions: ReadonlyMap<string, Action> = new Map<string, Action>([
  [
    'list',
    {
      needs: [],
      act: () => async (client, terminal) => {
        for await (const room of client.list()) terminal.out(lineOf(room))
      },
    },
  ],
  [
    'show',
    {
      needs: ['room'],
      act: (room) => async (client, terminal) => terminal.out(JSON.stringify(await client.show(room), null, 2)),
    },
  ],
  [
    'kick',
    {
      needs: ['room', 'userId'],
      act: (room, userId) => async (client, terminal) => {
        const { players } = await client.show(room)
        if (!players.some((player) => player.userId === userId)) throw notFound('Player')
        await client.kick(room, userId)
        terminal.out(`${userId} is kicked from ${nameOf(room)}.`)
      },
    },
  ],
  [
    'hibernate',
    {
      needs: ['room'],
      act: (room) => async (client, terminal) => {
        await client.hibernate(room)
        terminal.out(`${nameOf(room)} is saved and dropped from memory.`)
      },
    },
  ],
])

const nameOf = ({ namespace, id }: RoomKey): string => `${namespace}/${id}`

/** A namespace contains no slash; an id may. */
function parseRoom(text: string): RoomKey {
  const slash = text.indexOf('/')
  if (slash < 1 || slash === text.length - 1)
    throw new UsageError(`"${text}" is not a room: use namespace/id, such as game/lobby.`)
  return { namespace: text.slice(0, slash), id: text.slice(slash + 1) }
}

/** Parses the operands and returns the work for a server. Throws `UsageError`. */
function getWork({ operands: [name = '', ...named] }: Call): Work {
  const action = actions.get(name)
  if (!action)
    throw new UsageError(
      `"${name}" is not an action of \`plinth rooms\`. Available: ${[...actions.keys()].join(', ')}.`,
    )
  const missing = action.needs[named.length]
  if (missing !== undefined) throw new UsageError(`\`plinth rooms ${name}\` needs <${missing}>.`)
  const extra = named[action.needs.length]
  if (extra !== undefined) throw new UsageError(`\`plinth rooms ${name}\` does not take "${extra}".`)
  const [room, userId = ''] = named
  return action.act(room === undefined ? { namespace: '', id: '' } : parseRoom(room), userId)
}

async function run(call: Call): Promise<number> {
  const work = getWork(call)
  await work(await findRoomClient(call.options), call.terminal)
  return 0
}
