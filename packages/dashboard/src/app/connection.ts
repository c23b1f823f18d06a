/** Whether the server can be reached. While it cannot, its health is requested until it answers again. */
import { createStore } from './store.ts'

export type ConnectionState = 'up' | 'down'

const state = createStore<ConnectionState>('up')
const recovered = new Set<() => void>()

/** Between two probes: short enough for a restart, and few requests during a long outage. */
const probeDelaysMs = [400, 800, 1_500, 3_000, 5_000] as const

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The health of the server; rejects where there is no response. */
export const fetchHealth = (signal: AbortSignal | null = null): Promise<Response> =>
  fetch('/api/health', { credentials: 'omit', cache: 'no-store', signal })

const probe = (): Promise<boolean> =>
  fetchHealth().then(
    ({ ok }) => ok,
    () => false,
  )

async function waitForServer(): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    await delay(probeDelaysMs[Math.min(attempt, probeDelaysMs.length - 1)] ?? 5_000)
    if (state.get() === 'up') return
    if (await probe()) break
  }
  connection.reached()
}

export const connection = {
  state,
  /** A response has arrived. */
  reached(): void {
    if (state.get() === 'up') return
    state.set('up')
    for (const listener of recovered) listener()
  },
  /** A request had no response. */
  lost(): void {
    if (state.get() === 'down') return
    state.set('down')
    void waitForServer()
  },
  /** Calls the listener when the server answers again. Returns the function that stops it. */
  onRecovered(listener: () => void): () => void {
    recovered.add(listener)
    return () => recovered.delete(listener)
  },
}
