/**
 * The clients of the subscription bench, run as a process: groups of sockets that stay open across jobs, and writes
 * whose changes these sockets receive. Each change must reach each of its receivers exactly once and no other socket;
 * otherwise the job fails.
 */
import { serveJobs } from '../setup/jobs.ts'
import { LiveSocket } from './socket.ts'
import { changeNumberAt, type LiveResult, LiveWrites, type WriteJob } from './writes.ts'

/** Opens sockets and sends a hello on each; done when each has received `subscribed`. */
export interface OpenJob {
  readonly do: 'open'
  readonly group: string
  readonly port: number
  readonly path: string
  readonly count: number
  /** First messages, assigned to the sockets round-robin. Empty for no message. */
  readonly hellos: readonly string[]
  /** Whether write jobs verify and wait for the changes that these sockets receive. */
  readonly isCounted: boolean
}

/** Closes or pauses all sockets of a group. A paused socket does not read. */
export interface GroupJob {
  readonly do: 'close' | 'pause'
  readonly group: string
}

/** Sends a message on every socket of a group, without waiting for a response. */
export interface SendJob {
  readonly do: 'send'
  readonly group: string
  readonly message: string
}

export type LiveJob = OpenJob | GroupJob | SendJob | ({ readonly do: 'write' } & WriteJob)

/** Maximum unauthenticated sockets per address. */
const openingMax = 4

interface Group {
  readonly sockets: LiveSocket[]
  readonly isCounted: boolean
  /** Sockets that wait for `subscribed`. */
  readonly waiting: Map<LiveSocket, PromiseWithResolvers<void>>
}

const groups = new Map<string, Group>()
let writes: LiveWrites | null = null

const textOf = (bytes: Buffer, start: number, end: number): string => bytes.toString('latin1', start, end)

function onMessage(group: Group, socket: LiveSocket, bytes: Buffer, start: number, end: number): void {
  const number = changeNumberAt(bytes, start, end)
  if (number !== null) {
    if (group.isCounted) writes?.delivered(socket.index, number)
    return
  }
  const message = textOf(bytes, start, end)
  if (message.includes('"type":"subscribed"')) group.waiting.get(socket)?.resolve()
  else if (/"type":"(?:error|auth_error|batch_changes)"/.test(message)) onFailure(group, socket, message)
}

/** The server may close uncounted sockets, such as slow ones; a counted socket that fails ends the job. */
function onFailure(group: Group, socket: LiveSocket, why: string): void {
  const waiting = group.waiting.get(socket)
  if (waiting) waiting.reject(new Error(why))
  else if (group.isCounted) writes?.fail(`A socket failed: ${why}`)
}

async function open({ group: name, port, path, count, hellos, isCounted }: OpenJob): Promise<void> {
  const group: Group = { sockets: [], isCounted, waiting: new Map() }
  groups.set(name, group)
  let next = 0
  async function openSome(): Promise<void> {
    while (next < count) {
      const index = next++
      const socket = new LiveSocket(index, {
        onMessage: (one, bytes, start, end) => onMessage(group, one, bytes, start, end),
        onEnd: (one, why) => onFailure(group, one, why),
      })
      group.sockets[index] = socket
      const subscribed = Promise.withResolvers<void>()
      group.waiting.set(socket, subscribed)
      await socket.open(port, path)
      const hello = hellos[index % hellos.length]
      if (hello !== undefined) socket.send(hello)
      await subscribed.promise
      group.waiting.delete(socket)
    }
  }
  await Promise.all(Array.from({ length: openingMax }, openSome))
}

function each(name: string, act: (socket: LiveSocket) => void): void {
  for (const socket of groups.get(name)?.sockets ?? []) act(socket)
}

/** Runs one job. Rejects with the first failure. */
export async function runLiveJob(job: LiveJob): Promise<LiveResult | null> {
  switch (job.do) {
    case 'open':
      await open(job)
      return null
    case 'close':
      each(job.group, (socket) => socket.close())
      groups.delete(job.group)
      return null
    case 'pause':
      each(job.group, (socket) => socket.pause())
      return null
    case 'send':
      each(job.group, (socket) => socket.send(job.message))
      return null
    case 'write':
      writes = new LiveWrites(job)
      try {
        return await writes.run()
      } finally {
        writes = null
      }
  }
}

if (import.meta.main) await serveJobs(runLiveJob)
