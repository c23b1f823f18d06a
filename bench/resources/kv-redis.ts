/** A private Redis to hold key-value stores against, on the server's core: it syncs each write, or keeps nothing. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePassword, openPrivateServer } from '../../scripts/servers/private-server.ts'
import { provideRedis } from '../../scripts/servers/programs.ts'
import { pinned, serverCore } from '../setup/proc.ts'
import type { BaselineProcess } from '../setup/processes.ts'

export interface Redis extends BaselineProcess {
  readonly password: string
}

/** What Redis promises of an acknowledged write: that it is on disk, or nothing. */
export type RedisKeeping = 'always' | 'nothing'

/** Null where there is no Redis and none can be installed. */
export async function startRedis(keeping: RedisKeeping): Promise<Redis | null> {
  const program = provideRedis()
  if (program === null) return null
  const password = makePassword()
  const { folder, port, remove } = await openPrivateServer('redis', ({ folder, port }) => {
    const settings = [
      'bind 127.0.0.1',
      `port ${port}`,
      `requirepass ${password}`,
      'save ""',
      `appendonly ${keeping === 'always' ? 'yes' : 'no'}`,
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

/** As it says itself. */
export function readRedisVersion(): string {
  const program = provideRedis()
  if (program === null) return 'none'
  return /v=([\d.]+)/.exec(Bun.spawnSync([program, '--version']).stdout.toString())?.[1] ?? 'of an unknown version'
}
