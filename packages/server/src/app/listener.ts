/**
 * Serves the API: opens the listener, and replaces what it serves on reload. Features are created before it and use it
 * later, to publish to sockets and to know the server's URL.
 */
import { createServiceKeys } from '../access/service-keys.ts'
import type { HandleParts } from '../http/handle.ts'
import { createCors } from '../http/security/cors.ts'
import { openServer, type Served, type Server } from '../http/server.ts'
import type { Api } from './api.ts'
import { listenerBodyBytes, warnOfBodyBound } from './body-bound.ts'
import type { AppContext } from './context.ts'

/** What the listener serves, besides the parts that follow from the configuration. */
export interface ServedApi
  extends Pick<
    HandleParts,
    'sockets' | 'limiter' | 'authenticate' | 'dashboard' | 'audit' | 'onResponse' | 'recorder'
  > {
  readonly api: Api
  /** Called with the name of each service key that authenticates. */
  readonly onKeyUsed: (name: string) => void
}

export class Listener {
  readonly #context: AppContext
  #opened: { readonly server: Server; readonly api: ServedApi; readonly bodyBytesMax: number } | null = null

  constructor(context: AppContext) {
    this.#context = context
  }

  /** Throws the runtime's error if the port is in use. */
  open(api: ServedApi): void {
    const { settings, config } = this.#context
    const { host, port } = settings
    const bodyBytesMax = listenerBodyBytes(config.buckets)
    this.#opened = { server: openServer({ host, port, bodyBytesMax, ...this.#serve(api) }), api, bodyBytesMax }
  }

  get url(): string {
    return this.#require().server.url
  }

  get port(): number {
    return this.#require().server.port
  }

  /** Sends a text to every socket that listens to a topic. Without a listener there is none. */
  readonly publish = (topic: string, data: string | Uint8Array): void => {
    this.#opened?.server.publish(topic, data)
  }

  /** Serves by the configuration in force from the next request on. */
  replace(): void {
    const { server, api, bodyBytesMax } = this.#require()
    warnOfBodyBound(this.#context.config.buckets, bodyBytesMax, this.#context.log)
    server.replace(this.#serve(api))
  }

  /** Refuses new requests and waits for those in progress. */
  drain(): Promise<void> {
    return this.#require().server.drain()
  }

  #require() {
    if (!this.#opened) throw new Error('The listener is not open')
    return this.#opened
  }

  #serve({ api, onKeyUsed, ...parts }: ServedApi): Served {
    const { config, settings, clock, log, metrics, admission } = this.#context
    const { endpoints, socketEndpoints, dashboardEndpoints, dashboardSockets } = api
    const isServed = config.dashboard !== null
    return {
      endpoints: isServed ? [...endpoints, ...dashboardEndpoints] : endpoints,
      socketEndpoints: isServed ? [...socketEndpoints, ...dashboardSockets] : socketEndpoints,
      parts: {
        ...parts,
        log,
        metrics,
        admission,
        serviceKeys: createServiceKeys(config.serviceKeys, clock, onKeyUsed),
        cors: createCors({ mode: config.mode, origins: config.cors.origins }),
        trustProxy: settings.trustProxy,
      },
    }
  }
}
