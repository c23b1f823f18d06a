/**
 * The clients of the live bench, a process of its own: groups of sockets that stay open from job to job, and writes
 * whose changes these sockets are told. Every change must reach each of its receivers once and nobody else; the first
 * one that does not fails the job.
 */
import { serveJobs } from '../setup/jobs.ts'
import { LiveSocket } from './socket.ts'
import { changeNumberAt, type LiveResult, LiveWrites, type WriteJob } from './writes.ts'

/** Opens sockets and says hello on each; done when each has been answered `subscribed`. */
export interface OpenJob {
  readonly do: 'open'
  readonly group: string
  readonly port: number
  readonly path: string
  readonly count: number
  /** What the socket says; of several, each socket in turn says one. Empty where nothing is to be said. */
  readonly hellos: readonly string[]
  /** Its changes are looked at, and are some of those that a job waits for. */
  readonly isCounted: boolean
}

/** What is done to a whole group. A socket that is paused does not read. */
export interface GroupJob {
  readonly do: 'close' | 'pause'
  readonly group: string
}

/** What every socket of a group says, without waiting for an answer. */
export interface SayJob {
  readonly do: 'say'
  readonly group: string
  readonly message: string
}

export type LiveJob = OpenJob | GroupJob | SayJob | ({ readonly do: 'write' } & WriteJob)

/** As many sockets as may be on their way in from one address. */
const openingMax = 4

interface Group {
  readonly sockets: LiveSocket[]
  readonly isCounted: boolean
  /** Sockets that wait for their first answer. */
  readonly waiting: Map<LiveSocket, PromiseWithResolvers<void>>
}

const groups = new Map<string, Group>()
let writes: LiveWrites | null = null

const textOf = (bytes: Buffer, start: number, end: number): string => bytes.toString('latin1', start, end)

function heard(group: Group, socket: LiveSocket, bytes: Buffer, start: number, end: number): void {
  const number = changeNumberAt(bytes, start, end)
  if (number !== null) {
    if (group.isCounted) writes?.told(socket.index, number)
    return
  }
  const message = textOf(bytes, start, end)
  if (message.includes('"type":"subscribed"')) group.waiting.get(socket)?.resolve()
  else if (/"type":"(?:error|auth_error|batch_changes)"/.test(message)) failed(group, socket, message)
}

/** A slow socket may be closed; any other may not. */
function failed(group: Group, socket: LiveSocket, why: string): void {
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
        heard: (one, bytes, start, end) => heard(group, one, bytes, start, end),
        ended: (one, why) => failed(group, one, why),
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

/** Does one job. Rejects with the first thing that is not as it must be. */
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
    case 'say':
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
