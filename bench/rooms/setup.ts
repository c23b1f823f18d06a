/** The competitors of the rooms bench, how each is started, and the players. Measures nothing. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadCore } from '../setup/proc.ts'
import { type BaselineProcess, type JobProcess, startJobs, startListener, startServer } from '../setup/processes.ts'
import type { PlayResult, RoomsJob, RoomsResult, RoomsTarget, VisitResult } from './load.ts'
import type { TransportName } from './transports.ts'

export interface Competitor {
  readonly title: string
  readonly transport: TransportName
  /** Of the arena in `arena/plinth.config.ts`. */
  readonly namespace: string
  /** Whether answers to actions are sent with the deltas. */
  readonly isBatched?: boolean
  readonly start: (folder: string) => Promise<BaselineProcess>
}

const peersFolder = join(import.meta.dir, 'peers')

/** The peers' packages are not among those that a clone installs: nothing but this bench wants them. */
function installPeers(): void {
  if (existsSync(join(peersFolder, 'node_modules'))) return
  console.error('Installing the peers…')
  const { success } = Bun.spawnSync(['npm', 'install', '--no-save', '--ignore-scripts', '--loglevel=error'], {
    cwd: peersFolder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (!success) throw new Error('npm could not install the peers; see above')
}

/** The server of a peer runs in the same runtime on the same core. */
const peer = (title: string, transport: TransportName, program: string): Competitor => ({
  title,
  transport,
  namespace: '',
  async start() {
    installPeers()
    return startListener([program])
  },
})

export const startRoomsServer = (folder: string) => startServer(folder, null, 'bench/rooms/arena/plinth.config.ts')

/** The first is what the others are compared with. */
export const competitors: readonly [Competitor, ...Competitor[]] = [
  { title: 'Plinth', transport: 'plinth', namespace: 'arena', start: startRoomsServer },
  { title: 'Plinth, saved once a minute', transport: 'plinth', namespace: 'unsaved', start: startRoomsServer },
  {
    title: 'Plinth, deltas in MessagePack',
    transport: 'plinth-msgpack',
    namespace: 'arena',
    start: startRoomsServer,
  },
  {
    title: 'Plinth, MessagePack and batch',
    transport: 'plinth-batch',
    namespace: 'arena',
    isBatched: true,
    start: startRoomsServer,
  },
  {
    title: 'Bare WebSockets',
    transport: 'plinth',
    namespace: '',
    start: () => startListener(['bench/rooms/baseline.ts']),
  },
  peer('Colyseus', 'colyseus', 'bench/rooms/peers/colyseus.ts'),
  peer('Socket.IO', 'socket-io', 'bench/rooms/peers/socket-io.ts'),
]

/** One competitor's server with players of its own. */
export interface RoomsSetup {
  readonly process: BaselineProcess
  /** Makes the group as large as that. */
  fill(group: string, rooms: number, players: number): Promise<void>
  play(group: string, rooms: number, rate: number, times: PlayTimes): Promise<PlayResult>
}

export interface PlayTimes {
  readonly warmupSeconds: number
  readonly seconds: number
}

export type RoomsLoad = JobProcess<RoomsJob, RoomsResult>

export const startRoomsLoad = (): RoomsLoad => startJobs('bench/rooms/load.ts', loadCore)

/** The stack ends what is started. */
export async function openSetup(
  stack: AsyncDisposableStack,
  folder: string,
  { transport, namespace, start }: Competitor,
): Promise<RoomsSetup> {
  const data = join(folder, `rooms-${crypto.randomUUID()}`)
  stack.defer(() => rmSync(data, { recursive: true, force: true }))
  const process = await start(data)
  stack.defer(() => process.stop())
  const load = startRoomsLoad()
  stack.defer(() => load.stop())
  const target: RoomsTarget = { transport, namespace, port: process.port, pid: process.pid }
  return {
    process,
    async fill(group, rooms, players) {
      await load.run({ do: 'fill', ...target, group, rooms, players })
    },
    async play(group, rooms, rate, { warmupSeconds, seconds }) {
      const job = { do: 'play', group, rooms, rate, warmupSeconds, seconds } as const
      return (await load.run(job)) as PlayResult
    },
  }
}

/** One player joins and leaves each room. */
export async function visitRooms(
  load: RoomsLoad,
  { port, pid }: BaselineProcess,
  group: string,
  first: number,
  count: number,
): Promise<VisitResult> {
  const target = { transport: 'plinth', namespace: 'sleepy', port, pid } as const
  return (await load.run({ do: 'visit', ...target, group, first, count })) as VisitResult
}
