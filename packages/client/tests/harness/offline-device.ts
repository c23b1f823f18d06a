/** A device for tests: storage that outlives a client, and a network that can be cut. */
import { memoryStorage, type SessionStorage } from '../../src/index.ts'

/** What happens to a request: it reaches the server, does not, or its answer is lost. */
export type Network = 'up' | 'down' | 'answers-lost'

export interface Device {
  readonly storage: SessionStorage
  readonly values: Map<string, string>
  network: Network
  /** Methods and paths of the writes that have reached the server. */
  readonly sent: string[]
  readonly fetch: typeof fetch
  /** Resolves once a stored value is as expected; its key contains `part`. */
  stored(part: string, isExpected?: (text: string) => boolean): Promise<void>
}

export function createDevice(): Device {
  const values = new Map<string, string>()
  const memory = memoryStorage()
  let watchers: (() => void)[] = []
  const sent: string[] = []
  const device: Device = {
    values,
    network: 'up',
    sent,
    storage: {
      get: memory.get,
      set(key, value) {
        values.set(key, value)
        memory.set(key, value)
        for (const watch of watchers) watch()
      },
      remove(key) {
        values.delete(key)
        memory.remove(key)
      },
    },
    fetch: (async (input: string, init?: RequestInit) => {
      if (device.network === 'down') throw new TypeError('the network is down')
      const response = await fetch(input, init)
      if (init?.method === 'POST') sent.push(new URL(input).pathname)
      if (device.network === 'answers-lost' && init?.method === 'POST') throw new TypeError('the answer is lost')
      return response
    }) as typeof fetch,
    stored: (part, isExpected = () => true) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (![...values].some(([key, text]) => key.includes(part) && isExpected(text))) return
          watchers = watchers.filter((other) => other !== check)
          resolve()
        }
        watchers.push(check)
        check()
      }),
  }
  return device
}
