/**
 * The hosts in service: starts, replaces and watches processes, and gives each invocation to one of them. A blocked
 * host gets no more invocations, so that an endless loop delays only what had already begun beside it.
 */
import { dirname } from 'node:path'
import type { Log } from '../../base/log.ts'
import type { Cidr } from '../../base/network/address.ts'
import {
  hostAnswerMs,
  hostBlockedMs,
  hostInvocationsMax,
  hostRestartMs,
  hostRestartMsMax,
  hostStableMs,
  hostWaitingMax,
  hostWaitMs,
  hostWatchBusyMs,
  hostWatchIdleMs,
} from '../../limits/functions.ts'
import { MiB } from '../../limits/units.ts'
import { Generation } from './generation.ts'
import type { HostedInvocation, HostProcess } from './host-process.ts'
import type { FunctionHosts, HostsStatus, Invocation, InvocationResult, Manifest } from './hosts.ts'
import { RunningInvocation } from './invocation.ts'

export interface HostPoolOptions {
  /** Processes in service; twice as many while some are blocked. */
  readonly size: number
  /** Resident memory at which a host is killed. */
  readonly memoryBytes: number
  /** Environment variables of the hosts. */
  readonly environment: Readonly<Record<string, string>>
  /** The address of this server, for URLs that functions build. */
  readonly url: () => string
  /** Private networks that functions may request. */
  readonly networks: () => readonly Cidr[]
  /** The server of a test that answers `ctx.fetch` in place of others; null in use. */
  readonly fetchRelay?: string | null
  readonly log: Log
}

interface Waiting {
  readonly invocation: RunningInvocation
  readonly timer: ReturnType<typeof setTimeout>
}

export class HostPool implements FunctionHosts {
  readonly #options: HostPoolOptions
  /** The code in force. */
  #current: Generation | null = null
  /** Older code that still runs invocations. */
  readonly #retired = new Set<Generation>()
  readonly #waiting: Waiting[] = []
  /** Ends that followed a start at once. */
  #failures = 0
  #restart: ReturnType<typeof setTimeout> | null = null
  #watch: { readonly timer: ReturnType<typeof setTimeout>; readonly isBusy: boolean } | null = null
  #isClosed = false
  #invocations = 0
  #restarts = 0
  #lastEnd: { readonly atMs: number; readonly reason: string } | null = null

  constructor(options: HostPoolOptions) {
    this.#options = options
  }

  async load(entry: string, check?: (manifest: Manifest) => void | Promise<void>): Promise<Manifest> {
    const { environment, url, networks, fetchRelay = null, log } = this.#options
    const next = new Generation({
      entry,
      folder: dirname(entry),
      environment,
      url: url(),
      networks: networks(),
      fetchRelay,
      log,
      onCapacity: () => this.#onCapacity(),
      onEnd: (host, generation) => this.#onEnd(host, generation),
    })
    try {
      const manifest = await next.loadFirst()
      await check?.(manifest)
      if (this.#isClosed) throw new Error('The server is closing')
      this.#replace(next)
      return manifest
    } catch (error) {
      next.retire()
      next.kill('its code was not accepted')
      throw error
    }
  }

  #replace(next: Generation): void {
    const previous = this.#current
    this.#current = next
    this.#failures = 0
    if (previous) {
      previous.retire()
      if (previous.hosts.size > 0) this.#retired.add(previous)
    }
    this.#fill()
    this.#dispatch()
    this.#scheduleWatch(false)
  }

  invoke(call: Invocation): Promise<InvocationResult> {
    const invocation = new RunningInvocation(`${(++this.#invocations).toString(36)}`, call, (one) => this.#add(one))
    this.#add(invocation)
    return invocation.result
  }

  status(): HostsStatus {
    const current = this.#current
    const nowMs = performance.now()
    const hosts = [...(current?.hosts ?? [])].map((host) => ({
      pid: host.pid,
      invocations: host.invocations.size,
      isReady: current?.ready.has(host) === true,
      isBlocked: host.isBlocked,
      memoryBytes: host.residentBytes(),
      ageMs: nowMs - host.startedMs,
    }))
    const ended = this.#lastEnd
    return {
      hosts,
      waiting: this.#waiting.length,
      restarts: this.#restarts,
      lastEnd: ended && { ageMs: nowMs - ended.atMs, reason: ended.reason },
      memoryBytesMax: this.#options.memoryBytes,
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#restart) clearTimeout(this.#restart)
    if (this.#watch) clearTimeout(this.#watch.timer)
    for (const { invocation, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      invocation.fail({ kind: 'crashed', message: 'The server is closing', function: invocation.name })
    }
    const generations = [...this.#retired, ...(this.#current ? [this.#current] : [])]
    await Promise.all(generations.map((generation) => generation.close()))
  }

  /** Gives an invocation to a host, or queues it. */
  #add(invocation: RunningInvocation): void {
    if (this.#isClosed || !this.#current) {
      invocation.fail({ kind: 'overloaded', message: 'No code of functions is loaded' })
      return
    }
    const host = this.#waiting.length === 0 ? this.#pick(invocation) : null
    if (host) {
      this.#give(invocation, host)
      return
    }
    if (this.#waiting.length >= hostWaitingMax) {
      invocation.fail({ kind: 'overloaded', message: 'Too many invocations are waiting' })
      return
    }
    this.#wait(invocation)
    this.#fill()
  }

  #wait(invocation: RunningInvocation): void {
    const timer = setTimeout(() => {
      const at = this.#waiting.findIndex((one) => one.invocation === invocation)
      if (at >= 0) this.#waiting.splice(at, 1)
      invocation.fail({ kind: 'overloaded', message: 'No function host was free in time' })
    }, hostWaitMs)
    timer.unref?.()
    this.#waiting.push({ invocation, timer })
    this.#scheduleWatch(true)
  }

  /** The host with the least load for an invocation; null if none can take one. */
  #pick(invocation: RunningInvocation): HostProcess | null {
    let best: HostProcess | null = null
    for (const host of this.#current?.ready ?? []) {
      if (!isUsable(host) || host.invocations.size >= hostInvocationsMax) continue
      if (!best || host.loadFor(invocation) < best.loadFor(invocation)) best = host
    }
    return best
  }

  #give(invocation: RunningInvocation, host: HostProcess): void {
    invocation.sendTo(host)
    this.#scheduleWatch(true)
  }

  /** Moves what a blocked host has not begun to other hosts. */
  #onBlocked(host: HostProcess): void {
    host.isBlocked = true
    for (const invocation of unstarted(host)) invocation.move()
    this.#fill()
  }

  /** A host can take more, or has loaded. */
  #onCapacity(): void {
    this.#dispatch()
    for (const generation of this.#retired) generation.releaseIdle()
  }

  #dispatch(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const { invocation, timer } = next
      const host = this.#pick(invocation)
      if (!host) return
      this.#waiting.shift()
      clearTimeout(timer)
      if (!invocation.isOver) this.#give(invocation, host)
    }
  }

  /** Starts hosts until enough of them are usable. */
  #fill(): void {
    const { size } = this.#options
    const current = this.#current
    if (!current || this.#isClosed || this.#restart) return
    const usable = [...current.hosts].filter(isUsable).length
    try {
      for (let missing = Math.min(size - usable, 2 * size - current.hosts.size); missing > 0; missing--) current.start()
    } catch {
      // The system starts no process, such as in a folder that is being replaced. It must not end the server.
      this.#failures += 1
      this.#fillLater()
    }
  }

  #fillLater(): void {
    const delayMs = Math.min(hostRestartMs * 2 ** Math.max(0, this.#failures - 2), hostRestartMsMax)
    this.#restart ??= setTimeout(() => {
      this.#restart = null
      this.#fill()
    }, delayMs)
    this.#restart.unref?.()
  }

  #onEnd(host: HostProcess, generation: Generation): void {
    if (generation.hosts.size === 0) this.#retired.delete(generation)
    const moved = unstarted(host)
    const lost = [...host.invocations.values()].filter((one) => !moved.includes(one))
    host.invocations.clear()
    for (const invocation of lost)
      invocation.fail({ kind: 'crashed', message: 'The process of the function ended', function: invocation.name })
    if (this.#isClosed) return
    for (const invocation of moved) invocation.move()
    if (generation !== this.#current) return
    if (!generation.isReleased(host)) {
      this.#restarts += 1
      this.#lastEnd = { atMs: performance.now(), reason: host.reason }
    }
    const hasLived = performance.now() - host.startedMs > hostStableMs
    this.#failures = hasLived ? 0 : this.#failures + 1
    if (this.#failures <= 1) this.#fill()
    else this.#fillLater()
  }

  #scheduleWatch(isBusy: boolean): void {
    if (this.#isClosed || (this.#watch && (this.#watch.isBusy || !isBusy))) return
    if (this.#watch) clearTimeout(this.#watch.timer)
    const timer = setTimeout(
      () => {
        this.#watch = null
        this.#inspect(isBusy)
      },
      isBusy ? hostWatchBusyMs : hostWatchIdleMs,
    )
    timer.unref?.()
    this.#watch = { timer, isBusy }
  }

  /**
   * Begins to watch what has lasted for a while, finds blocked hosts, kills those that use too much memory or are
   * blocked while idle, and ends surplus ones.
   */
  #inspect(wasBusy: boolean): void {
    const { size } = this.#options
    const nowMs = performance.now()
    let isBusy = this.#waiting.length > 0
    for (const { invocation } of this.#waiting) invocation.watch(nowMs)
    for (const generation of [...this.#retired, ...(this.#current ? [this.#current] : [])])
      for (const host of generation.hosts) {
        for (const invocation of host.invocations.values()) invocation.watch(nowMs)
        if (host.invocations.size > 0) isBusy = true
        else if (wasBusy && nowMs - host.inspectedMs < hostWatchIdleMs) continue
        else host.inspectedMs = nowMs
        this.#inspectHost(host)
      }
    const current = this.#current
    const idle = [...(current?.ready ?? [])].filter((host) => isUsable(host) && host.invocations.size === 0)
    const surplus = [...(current?.hosts ?? [])].filter(isUsable).length - size
    for (const host of idle.slice(0, Math.max(0, surplus))) current?.release(host)
    this.#scheduleWatch(isBusy)
  }

  #inspectHost(host: HostProcess): void {
    const { memoryBytes } = this.#options
    const used = host.residentBytes() ?? 0
    if (used > memoryBytes) host.kill(`used ${toMiB(used)} MiB of memory, more than ${toMiB(memoryBytes)} MiB`)
    else if (host.invocations.size > 0) {
      if (host.waitingMs() >= hostAnswerMs) this.#onBlocked(host)
    } else if (host.pingMs() > hostBlockedMs) host.kill(`was blocked for ${hostBlockedMs} ms without an invocation`)
  }
}

const isUsable = (host: HostProcess): boolean => host.isAlive && !host.isBlocked && !host.isOverdue

const unstarted = (host: HostProcess): HostedInvocation[] =>
  [...host.invocations.values()].filter(({ hasStarted, isOver }) => !hasStarted && !isOver)

const toMiB = (bytes: number): number => Math.round(bytes / MiB)
