/** Runs several servers (nodes) on one storage. */
import type { Settings } from '../../src/config/config.ts'
import type { Engine } from './engines.ts'
import { type ServerOptions, startServer, type TestServer } from './server.ts'

export interface Nodes {
  readonly nodes: readonly TestServer[]
  /** Opens further servers on the same storage. */
  readonly engine: Engine
  /** Closes the nodes and removes the storage. */
  close(): Promise<void>
}

/**
 * An engine whose servers all share one storage, with some settings of it overridden. Must be removed. Rejects without
 * an engine: `sharedEngine` is undefined on machines that have none.
 */
export async function openSharedStorage(
  engine: Engine | undefined,
  settings: Partial<Settings> = {},
): Promise<{ readonly engine: Engine; readonly settings: Partial<Settings>; remove(): Promise<void> }> {
  if (!engine) throw new Error('nodes need an engine that they can share')
  const storage = await engine.openStorage()
  const shared = { ...storage.settings, ...settings }
  const one = { ...storage, settings: shared, remove: async () => {} }
  return { engine: { name: engine.name, openStorage: async () => one }, settings: shared, remove: storage.remove }
}

/** Starts this number of servers concurrently on one storage of the engine. Must be closed. */
export async function openNodes(
  engine: Engine | undefined,
  count: number,
  options: ServerOptions,
  settings: Partial<Settings> = {},
): Promise<Nodes> {
  const storage = await openSharedStorage(engine, settings)
  const nodes = await Promise.all(Array.from({ length: count }, () => startServer(options, storage.engine)))
  return {
    nodes,
    engine: storage.engine,
    async close() {
      for (const node of nodes) await node.close()
      await storage.remove()
    },
  }
}

/** Repeats a request until the response has this status. */
export async function untilStatus(status: number, node: TestServer, path: string): Promise<void> {
  for (let attempts = 0; attempts < 5000; attempts++) {
    if ((await node.anonymous.get(path)).status === status) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`${path} never answered ${status}`)
}
