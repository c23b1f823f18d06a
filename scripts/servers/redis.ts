/** A private Redis that keeps nothing. */
import { makePassword, openPrivateServer, type PrivateServer } from './private-server.ts'

/** Starts the program at `path`. Must be removed. */
export function openRedis(path: string): Promise<PrivateServer> {
  const password = makePassword()
  return openPrivateServer('redis', ({ folder, port }) => {
    // Through its input, where other users of the machine do not see it.
    const settings = [
      'bind 127.0.0.1',
      `port ${port}`,
      `requirepass ${password}`,
      'save ""',
      'appendonly no',
      'daemonize no',
      `dir ${folder}`,
    ]
    return {
      url: `redis://:${password}@127.0.0.1:${port}`,
      process: { command: [path, '-'], ready: 'Ready to accept connections', input: `${settings.join('\n')}\n` },
    }
  })
}
