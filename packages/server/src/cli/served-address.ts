/**
 * The address file in the data folder: a running server writes its URL there, so that commands which find the folder
 * locked can call the server instead.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const pathIn = (dataFolder: string): string => join(dataFolder, 'address')

/** Replaces a wildcard address by the loopback. */
const reachable = (url: string): string => url.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]')

/** Call only while holding the lock of the folder. */
export const keepAddress = (dataFolder: string, url: string): Promise<void> =>
  writeFile(pathIn(dataFolder), `${reachable(url)}\n`, { mode: 0o600 })

export const removeAddress = (dataFolder: string): Promise<void> => rm(pathIn(dataFolder), { force: true })

/** Null if there is no address file. */
export async function findAddress(dataFolder: string): Promise<string | null> {
  try {
    return (await readFile(pathIn(dataFolder), 'utf8')).trim() || null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
