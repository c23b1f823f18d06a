/** The functions of a project without a server: loaded in a host of their own, and described for clients. */
import { silentLog } from '../base/log.ts'
import type { Config, Settings } from '../config/config.ts'
import { openHosts } from '../engines/open.ts'
import { readOutlines } from '../features/functions/code.ts'
import type { FunctionOutline } from '../http/pages/openapi-functions.ts'

/** What a program needs to run; never the secrets of the server. */
export const hostEnvironment = (environment: Settings['environment']): Record<string, string> =>
  Object.fromEntries(
    ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_ENV', 'NODE_EXTRA_CA_CERTS'].flatMap((name) => {
      const value = environment[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** Throws `ConfigError` where the functions do not load or do not fit the configuration. */
export async function readProjectFunctions(
  config: Config,
  folder: string,
  environment: Settings['environment'],
): Promise<readonly FunctionOutline[]> {
  const { hosts: size, memoryBytes } = config.functions
  const hosts = openHosts({
    size,
    memoryBytes,
    environment: hostEnvironment(environment),
    url: () => 'http://127.0.0.1',
    networks: () => [],
    log: silentLog,
  })
  try {
    return await readOutlines(hosts, config, folder)
  } finally {
    await hosts.close()
  }
}
