/** Several servers as processes on one storage, of which tests kill some. */
import type { Engine } from '../engines.ts'
import { openSharedStorage } from '../nodes.ts'
import { type SpawnedServer, type SpawnOptions, spawnServer } from './spawn.ts'

export interface ProcessNode {
  readonly server: SpawnedServer
  /** Resolves at once while the node serves requests, and otherwise once it does again. */
  up(): Promise<void>
  /** Kills the node with SIGKILL and starts it again after `meanwhile`. */
  restart(meanwhile?: () => Promise<void>): Promise<void>
}

export interface ProcessNodes {
  readonly nodes: readonly ProcessNode[]
  /** Kills the nodes and removes the storage. */
  remove(): Promise<void>
}

function nodeOf(server: SpawnedServer): ProcessNode {
  let starting: Promise<void> = Promise.resolve()
  return {
    server,
    up: () => starting,
    restart(meanwhile = async () => {}) {
      starting = starting.then(async () => {
        await server.kill()
        await meanwhile()
        await server.start()
      })
      return starting
    },
  }
}

/** Serves a configuration with this number of nodes; the embedded engine can have one. Must be removed. */
export async function spawnNodes(
  configText: string,
  engine: Engine,
  count: number,
  options: SpawnOptions = {},
): Promise<ProcessNodes> {
  const storage = await openSharedStorage(engine)
  const servers = await Promise.all(
    Array.from({ length: count }, () => spawnServer(configText, storage.engine, options)),
  )
  return {
    nodes: servers.map(nodeOf),
    async remove() {
      for (const server of servers) await server.remove()
      await storage.remove()
    },
  }
}
