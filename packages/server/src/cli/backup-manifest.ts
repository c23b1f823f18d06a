/** What a backup says of itself before its files, and the server's secrets in it, which only a passphrase opens. */
import { readFile } from 'node:fs/promises'
import { sealUnderPassphrase, unsealUnderPassphrase } from '../base/crypto/passphrase.ts'
import { z } from '../base/schemas/z.ts'
import { BackupError } from '../engines/backup/archive.ts'
import { passphraseCharsMin } from '../limits/jobs.ts'
import { version } from '../version.ts'

/** Rises with what an older program could not restore. */
const format = 1

const manifestShape = z.object({
  plinth: z.literal('backup'),
  format: z.int(),
  version: z.string(),
  createdAt: z.string(),
  /** Null where the backup holds none. */
  secrets: z.string().nullable(),
})

const secretsShape = z.record(z.enum(['secret', 'service-key']), z.string().optional())

/** Names and contents of the secret files of the data folder. */
export type Secrets = ReadonlyMap<string, string>

/** The text of `backup.json`. `sealed` is null for a backup without secrets. */
export const formatManifest = (createdAt: string, sealed: string | null): string =>
  `${JSON.stringify({ plinth: 'backup', format, version, createdAt, secrets: sealed }, null, 2)}\n`

export const sealSecrets = (secrets: Secrets, passphrase: string): string =>
  sealUnderPassphrase(JSON.stringify(Object.fromEntries(secrets)), passphrase)

/** The sealed secrets. Throws `BackupError` for what is no backup, or one of a newer program. */
export function parseManifest(text: string): { version: string; createdAt: string; secrets: string | null } {
  const { success, data } = manifestShape.safeParse(readJson(text))
  if (!success) throw new BackupError('This is not a backup of Plinth')
  if (data.format > format)
    throw new BackupError(`The backup was made by Plinth ${data.version}, which is newer than this one: please update`)
  return data
}

/** Throws `BackupError` for another passphrase. */
export function unsealSecrets(sealed: string, passphrase: string): Secrets {
  const text = unsealUnderPassphrase(sealed, passphrase)
  if (text === null) throw new BackupError('Wrong passphrase for this backup')
  const { success, data } = secretsShape.safeParse(readJson(text))
  if (!success) throw new BackupError('The secrets of the backup are damaged')
  return new Map(Object.entries(data).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** The first line of a file. Throws `BackupError` for one that is too easily guessed. */
export async function readPassphrase(path: string): Promise<string> {
  const passphrase = (await readFile(path, 'utf8')).split(/\r?\n/)[0] ?? ''
  if (passphrase.length < passphraseCharsMin)
    throw new BackupError(`${path}: a passphrase has at least ${passphraseCharsMin} characters, on the first line`)
  return passphrase
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
