/**
 * The load generator for Redis: prebuilt commands, one in flight per connection. It checks the type of every reply, and
 * the content of sampled ones; the first wrong reply fails the job.
 */
import { Histogram } from '../load/histogram.ts'
import type { LoadResult } from '../load/load.ts'
import { serveJobs } from '../setup/jobs.ts'
import { readGroupCpuSeconds } from '../setup/proc.ts'

export interface RedisCommand {
  /** The command in RESP. ASCII. */
  readonly text: string
  /** The first byte of a correct reply: `+` for a status, `$` for a value. */
  readonly kind: '+' | '$'
  /** Contained in every sampled reply. */
  readonly includes: string
}

export interface RedisJob {
  readonly port: number
  readonly password: string
  readonly connections: number
  readonly commands: readonly RedisCommand[]
  readonly warmupSeconds: number
  readonly seconds: number
  /** Number of commands of a fixed job, without warm-up; null for a timed job. */
  readonly total: number | null
  readonly pid: number
}

export type RedisResult = Pick<
  LoadResult,
  'requests' | 'seconds' | 'latencies' | 'cpuSeconds' | 'loadCpuSeconds' | 'answered'
>

const sampleEvery = 211

/** Encodes a command and its arguments in RESP. */
export const formatCommand = (...args: readonly string[]): string =>
  `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`

/** Length of the reply at the start of the buffer; null while it is incomplete. Throws for an error reply. */
export function measureReply(bytes: Buffer): number | null {
  const line = bytes.indexOf('\r\n')
  if (line < 0) return null
  const kind = String.fromCharCode(bytes[0] as number)
  if (kind === '+') return line + 2
  const length = Number(bytes.toString('latin1', 1, line))
  if (kind !== '$' || !(length >= 0)) throw new Error(`Redis replied ${bytes.toString('latin1', 0, line)}`)
  const end = line + 2 + length + 2
  return bytes.length < end ? null : end
}

interface RedisConnection {
  send(text: string): Promise<Buffer>
  close(): void
}

async function connect(port: number): Promise<RedisConnection> {
  let waiting: PromiseWithResolvers<Buffer> | null = null
  let received: Buffer = Buffer.alloc(0)
  const fail = (error: Error): void => waiting?.reject(error)
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        received = received.length === 0 ? Buffer.from(chunk) : Buffer.concat([received, chunk])
        try {
          if (measureReply(received) === null) return
        } catch (error) {
          return fail(error as Error)
        }
        const reply = received
        received = Buffer.alloc(0)
        waiting?.resolve(reply)
      },
      close: () => fail(new Error('Redis closed the connection')),
      error: (_, error) => fail(error),
    },
  })
  return {
    send(text) {
      waiting = Promise.withResolvers<Buffer>()
      socket.write(text)
      return waiting.promise
    },
    close: () => void socket.end(),
  }
}

/** Runs one job; rejects on the first wrong reply, refused connection or early close. */
export async function runRedisLoad(job: RedisJob): Promise<RedisResult> {
  const connections = await Promise.all(Array.from({ length: job.connections }, () => connect(job.port)))
  const latencies = new Histogram()
  let sent = 0
  let answered = 0
  let sending = true

  async function lane(connection: RedisConnection): Promise<void> {
    await connection.send(formatCommand('AUTH', job.password))
    while (sending && sent !== job.total) {
      const command = job.commands[sent % job.commands.length] as RedisCommand
      const isSampled = sent++ % sampleEvery === 0
      const startedAt = performance.now()
      const reply = await connection.send(command.text)
      latencies.add(performance.now() - startedAt)
      answered++
      const isRight = reply[0] === command.kind.charCodeAt(0) && (!isSampled || reply.includes(command.includes))
      if (!isRight) throw new Error(`Wrong reply to ${command.text.slice(0, 100)}: ${reply.toString().slice(0, 300)}`)
    }
  }

  const lanes = Promise.all(connections.map(lane))
  // Prevents an unhandled rejection before it is awaited.
  lanes.catch(() => {})
  try {
    if (job.total === null) await Promise.race([Bun.sleep(job.warmupSeconds * 1000), lanes])
    latencies.reset()
    const startedAt = performance.now()
    const cpu = process.cpuUsage()
    const before = readGroupCpuSeconds([job.pid])
    await Promise.race([...(job.total === null ? [Bun.sleep(job.seconds * 1000)] : []), lanes])
    const seconds = (performance.now() - startedAt) / 1000
    const used = process.cpuUsage(cpu)
    const after = readGroupCpuSeconds([job.pid])
    const [requests, counted] = [latencies.total, latencies.toSparse()]
    sending = false
    await lanes
    return {
      requests,
      seconds,
      latencies: counted,
      cpuSeconds: [before === null || after === null ? null : after - before],
      loadCpuSeconds: (used.user + used.system) / 1e6,
      answered,
    }
  } finally {
    for (const connection of connections) connection.close()
  }
}

if (import.meta.main) await serveJobs(runRedisLoad)
