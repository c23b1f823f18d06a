/** HAProxy in front of the nodes, with the settings of haproxy.cfg. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort, runToEnd, startProcess } from '../../scripts/servers/private-server.ts'
import type { Node } from './nodes.ts'

export interface LoadBalancer {
  readonly url: string
  stop(): Promise<void>
}

/** Starts the program at `haproxy`; port 0 takes any free one. Must be stopped. */
export async function startLoadBalancer(
  haproxy: string,
  folder: string,
  nodes: readonly Node[],
  wantedPort: number,
): Promise<LoadBalancer> {
  const port = wantedPort || findFreePort()
  const template = readFileSync(join(import.meta.dirname, 'haproxy.cfg'), 'utf8')
  const servers = nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port}\n`)
  const path = join(folder, 'haproxy.cfg')
  writeFileSync(path, template.replace('127.0.0.1:PORT', `127.0.0.1:${port}`) + servers.join(''))
  runToEnd([haproxy, '-c', '-f', path], null)
  const running = await startProcess({ command: [haproxy, '-db', '-f', path] })
  return { url: `http://127.0.0.1:${port}`, stop: () => running.end('SIGTERM') }
}
