/** WebSockets of a client that fail as a test says: lost, silent, or with messages that are swallowed or added. */

export function openFaultySockets() {
  const all: FaultySocket[] = []
  let waiting: (() => void)[] = []
  const faults = {
    /** What new sockets do: connect, reach nothing, or fail at once. */
    network: 'up' as 'up' | 'silent' | 'down',
    /** Whether a message of the server is lost. */
    isLost: (_: string): boolean => false,
  }
  /** Sockets that are silent are connected to a port that accepts and never answers. */
  const nowhere = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })

  class FaultySocket extends WebSocket {
    constructor(url: string, options?: string[]) {
      const urls = { up: url, silent: `ws://127.0.0.1:${nowhere.port}`, down: 'ws://127.0.0.1:1' }
      super(urls[faults.network], options)
      all.push(this)
      this.addEventListener('message', (event) => {
        if (faults.isLost(String(event.data))) event.stopImmediatePropagation()
      })
      for (const resolve of waiting.splice(0)) resolve()
    }

    /** Receives a message that the server has not sent. */
    deliver(data: string): void {
      this.dispatchEvent(new MessageEvent('message', { data }))
    }
  }

  return {
    faults,
    all,
    options: { WebSocket: FaultySocket as unknown as typeof WebSocket },
    /** The last socket. */
    get last(): FaultySocket {
      return all.at(-1) as FaultySocket
    },
    /** Resolves when the next socket is created. */
    next: (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve)
      }),
    stop(): void {
      waiting = []
      nowhere.stop(true)
    },
  }
}
