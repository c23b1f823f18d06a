/** Finds a running server and its service key, for commands that manage what only a running server has. */
import type { Config } from '../config/config.ts'
import { type LoadOptions, load } from '../config/load.ts'
import { checkFolderFree } from '../engines/disk/folder-lock.ts'
import { EngineError } from '../engines/sql/error.ts'
import { parseAddress } from './admin-call.ts'
import { findAddress } from './served-address.ts'

export type RunningServerOptions = LoadOptions & { readonly url?: string | undefined }

/** Uses `url`, or else the server that serves the data folder. Throws if there is none. */
export async function findRunningServer(
  options: RunningServerOptions,
): Promise<{ readonly url: string; readonly serviceKey: string; readonly config: Config }> {
  const given = options.url === undefined ? null : parseAddress(options.url)
  const { config, settings } = await load(options, 'release')
  const { serviceKey, dataFolder, databaseUrl } = settings
  return { url: given ?? (databaseUrl === null ? await findServed(dataFolder) : noServer()), serviceKey, config }
}

async function findServed(dataFolder: string): Promise<string> {
  // The address file may be stale and another process may use the port: it must not receive the key.
  const url = isServed(dataFolder) ? await findAddress(dataFolder) : null
  return url ?? noServer()
}

/** Whether another process has locked the folder. */
function isServed(folder: string): boolean {
  try {
    checkFolderFree(folder)
    return false
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'unavailable') return true
    throw error
  }
}

function noServer(): never {
  throw new EngineError(
    'unavailable',
    'No running server was found. Start it, or pass the address of a node with --url.',
  )
}
