/** `plinth rooms`: the rooms of a server that runs, and who is in them. */
import { notFound } from '../../errors.ts'
import type { RoomKey } from '../../features/rooms/engine/ports.ts'
import { type Call, type Command, type Terminal, UsageError } from '../command.ts'
import { findRoomClient, type ListedRoom, type RoomClient } from '../room-client.ts'
import { configOptions } from '../serve.ts'

export const roomsCommand: Command = {
  name: 'rooms',
  summary: 'List or show rooms, kick a player, or put a room to sleep',
  operands: ['<action>', '[room]', '[userId]'],
  options: {
    url: { value: '<address>', help: 'Any node of the server (default: the one serving the data folder)' },
    ...configOptions,
  },
  details: `Actions; a room is named by its namespace and id, such as game/lobby:
  list                     The rooms in memory, on all nodes, with who is there
  show <room>              Its states, players and latest actions, as JSON
  kick <room> <userId>     Have a player leave; the join rule says who comes back
  hibernate <room>         Save it and drop it from memory; it comes back at once
                           where players are in it, and else when one joins

Goes through a server that runs, with its service key. A server on PostgreSQL is named
with --url, and its key is PLINTH_SERVICE_KEY.`,
  run,
}

type Work = (client: RoomClient, terminal: Terminal) => Promise<void>

interface Action {
  /** What must be named behind it. */
  readonly needs: readonly ('room' | 'userId')[]
  readonly act: (room: RoomKey, userId: string) => Work
}

/** How many there are of something, in words. */
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

/** No namespace holds a slash; an id may. */
function parseRoom(text: string): RoomKey {
  const slash = text.indexOf('/')
  if (slash < 1 || slash === text.length - 1)
    throw new UsageError(`"${text}" names no room: write its namespace and id, such as game/lobby.`)
  return { namespace: text.slice(0, slash), id: text.slice(slash + 1) }
}

/** Takes the words apart, and gives what is to be done once the server is found. Throws `UsageError`. */
function getWork({ operands: [name = '', ...named] }: Call): Work {
  const action = actions.get(name)
  if (!action)
    throw new UsageError(`"${name}" is no action of \`plinth rooms\`. There are: ${[...actions.keys()].join(', ')}.`)
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
