/**
 * Where the server of a data folder is reached: written into the folder while it is served, so that a command which
 * finds the folder taken can go through the server instead.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const pathIn = (dataFolder: string): string => join(dataFolder, 'address')

/** An address that listens everywhere is reached from here by the loopback. */
const reachable = (url: string): string => url.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]')

/** To be called by the process that has the folder. */
export const keepAddress = (dataFolder: string, url: string): Promise<void> =>
  writeFile(pathIn(dataFolder), `${reachable(url)}\n`, { mode: 0o600 })

export const removeAddress = (dataFolder: string): Promise<void> => rm(pathIn(dataFolder), { force: true })

/** Null where no server has left its address. */
export async function findAddress(dataFolder: string): Promise<string | null> {
  try {
    return (await readFile(pathIn(dataFolder), 'utf8')).trim() || null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
