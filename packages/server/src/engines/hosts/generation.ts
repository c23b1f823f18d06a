/** The hosts of one version of the code. Every host of it loads the same source, also after the files have changed. */
import type { Log } from '../../base/log.ts'
import type { Cidr } from '../../base/network/address.ts'
import { hostLoadMs } from '../../limits/functions.ts'
import { HostProcess } from './host-process.ts'
import { type CodeLocation, LoadError, type Manifest } from './hosts.ts'
import type { FromHost } from './protocol.ts'

export interface GenerationOptions {
  /** Absolute path of the module. */
  readonly entry: string
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  readonly url: string
  readonly networks: readonly Cidr[]
  readonly fetchRelay: string | null
  readonly log: Log
  readonly onCapacity: () => void
  /** A host that had loaded, or that was started to replace one, has ended. */
  readonly onEnd: (host: HostProcess, generation: Generation) => void
}

interface Loading {
  readonly loaded: Promise<Manifest>
  readonly host: HostProcess
}

export class Generation {
  readonly #options: GenerationOptions
  readonly hosts = new Set<HostProcess>()
  /** Those that have loaded the code. */
  readonly ready = new Set<HostProcess>()
  /** The source that the first host has loaded, by absolute path. */
  #sources: Readonly<Record<string, string>> = {}
  #isRetired = false

  constructor(options: GenerationOptions) {
    this.#options = options
  }

  /** Starts the first host. Rejects with `LoadError`. */
  async loadFirst(): Promise<Manifest> {
    const { loaded, host } = this.#open()
    const manifest = await loaded
    this.ready.add(host)
    return manifest
  }

  /** Starts another host; it becomes ready by itself. */
  start(): void {
    const { loaded, host } = this.#open()
    loaded.then(
      () => {
        this.ready.add(host)
        this.#options.onCapacity()
      },
      (error: LoadError) => host.kill(`its code did not load: ${error.message}`),
    )
  }

  /** Lets invocations under way finish, and ends the hosts as they become idle. */
  retire(): void {
    this.#isRetired = true
    this.releaseIdle()
  }

  /** Of a retired generation. */
  releaseIdle(): void {
    if (this.#isRetired) for (const host of this.hosts) if (host.invocations.size === 0) this.release(host)
  }

  /** Ends a host without a trace in the log. */
  release(host: HostProcess): void {
    this.ready.delete(host)
    this.#released.add(host)
    host.kill('it is not needed any more')
  }
  readonly #released = new WeakSet<HostProcess>()

  /** Whether the host was ended because it was not needed. */
  isReleased(host: HostProcess): boolean {
    return this.#released.has(host)
  }

  kill(reason: string): void {
    for (const host of this.hosts) host.kill(reason)
  }

  async close(): Promise<void> {
    this.#isRetired = true
    this.kill('the server is closing')
    await Promise.all([...this.hosts].map(({ ended }) => ended.promise))
  }

  #open(): Loading {
    const { entry, folder, environment, url, networks, fetchRelay, onCapacity, onEnd, log } = this.#options
    const loading = Promise.withResolvers<Manifest>()
    loading.promise.catch(() => undefined)
    let isLoaded = false
    let location: CodeLocation | null = null
    let timer: ReturnType<typeof setTimeout> | undefined
    const receive = (message: FromHost): void => {
      switch (message.type) {
        case 'up':
          host.send({ type: 'load', entry, url, networks, fetchRelay, sources: this.#sources })
          return
        case 'loaded':
          clearTimeout(timer)
          isLoaded = true
          this.#sources = message.sources
          loading.resolve(message.manifest)
          return
        case 'load-failed':
          clearTimeout(timer)
          loading.reject(new LoadError(message.message, message.location, message.files))
          return
        case 'ending':
          host.explain(message.reason)
          location = message.location
          return
        case 'logs-dropped':
          log.warn('functions.logs_dropped', { lines: message.count })
      }
    }
    const host: HostProcess = new HostProcess({
      folder,
      environment,
      onMessage: receive,
      onCapacity,
      onEnd: () => {
        clearTimeout(timer)
        this.hosts.delete(host)
        this.ready.delete(host)
        loading.reject(new LoadError(`The process ended while it loaded the code: ${host.reason}`, location))
        if (!this.#isRetired && !this.#released.has(host) && isLoaded) this.#logEnd(host, location)
        onEnd(host, this)
      },
    })
    // A process that cannot be started has thrown, and needs no deadline.
    timer = setTimeout(() => host.kill(`its code did not load within ${hostLoadMs} ms`), hostLoadMs)
    timer.unref()
    this.hosts.add(host)
    return { loaded: loading.promise, host }
  }

  #logEnd(host: HostProcess, location: CodeLocation | null): void {
    const { pid, reason } = host
    const functions = [...host.invocations.values()].filter(({ hasStarted }) => hasStarted).map(({ name }) => name)
    this.#options.log.error('functions.host_ended', {
      pid,
      reason,
      ...(location ? { location: `${location.file}:${location.line}` } : {}),
      functions,
    })
  }
}
