/** A private Redis on the server's core, for comparison: it syncs each write, or persists nothing. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePassword, openPrivateServer } from '../../scripts/servers/private-server.ts'
import { provideRedis } from '../../scripts/servers/programs.ts'
import { pinned, serverCore } from '../setup/proc.ts'
import type { BaselineProcess } from '../setup/processes.ts'

export interface Redis extends BaselineProcess {
  readonly password: string
}

/** Durability of an acknowledged write: on disk, or none. */
export type RedisDurability = 'always' | 'nothing'

/** Null where Redis is missing and cannot be installed. */
export async function startRedis(durability: RedisDurability): Promise<Redis | null> {
  const program = provideRedis()
  if (program === null) return null
  const password = makePassword()
  const { folder, port, remove } = await openPrivateServer('redis', ({ folder, port }) => {
    const settings = [
      'bind 127.0.0.1',
      `port ${port}`,
      `requirepass ${password}`,
      'save ""',
      `appendonly ${durability === 'always' ? 'yes' : 'no'}`,
      'appendfsync always',
      'daemonize no',
      'pidfile redis.pid',
      `dir ${folder}`,
    ]
    return {
      url: `redis://127.0.0.1:${port}`,
      process: {
        command: [...pinned(serverCore), program, '-'],
        ready: 'Ready to accept connections',
        input: `${settings.join('\n')}\n`,
      },
    }
  })
  const pid = Number(readFileSync(join(folder, 'redis.pid'), 'utf8'))
  return { pid, port, password, stop: remove }
}

/** The version that the program reports. */
export function readRedisVersion(): string {
  const program = provideRedis()
  if (program === null) return 'none'
  return /v=([\d.]+)/.exec(Bun.spawnSync([program, '--version']).stdout.toString())?.[1] ?? 'of an unknown version'
}
