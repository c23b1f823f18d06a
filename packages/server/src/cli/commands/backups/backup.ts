/** `plinth backup`: writes the data folder into one archive, whether its server runs or not. */
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { systemClock } from '../../../base/clock.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { type DataLocation, loadDataLocation } from '../../../config/load.ts'
import { BackupError } from '../../../engines/backup/archive.ts'
import { backUp, type KeptFiles } from '../../../engines/backup/backup.ts'
import { folderTaken, lockFileName, lockFolder } from '../../../engines/disk/folder-lock.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { ApiError } from '../../../errors.ts'
import { backupPauseAttemptsMax } from '../../../limits/jobs.ts'
import { type AdminCall, createAdminCall } from '../../admin-call.ts'
import { keepByLease, keepWithoutServer } from '../../backup-lease.ts'
import { formatManifest, readPassphrase, type Secrets, sealSecrets } from '../../backup-manifest.ts'
import type { Command } from '../../command.ts'
import { findAddress } from '../../served-address.ts'

export const backupCommand: Command = {
  name: 'backup',
  summary: 'Write all data of a server into one file',
  operands: ['<file-or-folder>'],
  options: {
    data: { value: '<folder>', help: 'The data folder (default ./data)' },
    'passphrase-file': { value: '<file>', help: 'Its first line is the passphrase that encrypts secrets' },
  },
  details: `Writes a tar archive, named after the time if a folder is given; \`plinth restore\` turns it
into a data folder again. The server may keep running: databases are copied from one
consistent snapshot, for which writes pause for some milliseconds.

The secret and the service key of the data folder are only included, encrypted, if
a passphrase is given. The rest is not encrypted: protect it like the data itself.

With DATABASE_URL the data is in PostgreSQL: back it up with pg_dump, and a bucket with
the tools of its store.`,
  async run({ operands: [operand = ''], options, terminal }) {
    const location = loadDataLocation(options)
    checkDestination(location)
    const createdAt = formatDatetime(systemClock.now())
    const target = targetOf(operand, createdAt)
    const passphraseFile = options['passphrase-file']
    const passphrase = passphraseFile === undefined ? null : await readPassphrase(passphraseFile)
    const secrets = await findSecrets(location.dataFolder)
    const sealed = passphrase === null || secrets.size === 0 ? null : sealSecrets(secrets, passphrase)
    const report = await backUp({
      folder: location.dataFolder,
      target,
      head: formatManifest(createdAt, sealed),
      moment: (pin) => atOneMoment(location, pin),
    })
    terminal.out(`${target}: ${report.databases} databases and ${report.files} files, ${report.bytes} bytes`)
    if (sealed === null) terminal.error(withoutSecrets(secrets))
    if (location.hasStore) terminal.error('Files are in the S3 bucket, which is not in this backup: copy it as well.')
    return 0
  },
}

function checkDestination({ databaseUrl, dataFolder }: DataLocation): void {
  if (databaseUrl !== null)
    throw new BackupError(
      'The data is in PostgreSQL: back it up with pg_dump, and the bucket of its files with the tools of its store.',
    )
  if (!existsSync(join(dataFolder, lockFileName))) throw new BackupError(`No server has served ${dataFolder}`)
}

function targetOf(operand: string, createdAt: string): string {
  const path = resolve(operand)
  const isFolder = existsSync(path) && statSync(path).isDirectory()
  return isFolder ? join(path, `plinth-${createdAt.replaceAll(':', '-')}.tar`) : path
}

async function findSecrets(dataFolder: string): Promise<Secrets> {
  const found = new Map<string, string>()
  for (const name of ['secret', 'service-key']) {
    const path = join(dataFolder, name)
    if (existsSync(path)) found.set(name, await readFile(path, 'utf8'))
  }
  return found
}

const withoutSecrets = (secrets: Secrets): string =>
  secrets.size === 0
    ? 'The secrets come from the environment and are not in this backup.'
    : 'The secrets are not in this backup, because no --passphrase-file was given. Without them all users have to sign in again, and second factors are lost.'

/** Takes the snapshot while nothing writes: with the folder locked, or while its server pauses writes. */
async function atOneMoment({ dataFolder, serviceKey }: DataLocation, pin: () => void): Promise<KeptFiles> {
  const lock = tryLock(dataFolder)
  if (lock) {
    try {
      pin()
      return keepWithoutServer(dataFolder)
    } finally {
      lock.close()
    }
  }
  const call = callServer(dataFolder, serviceKey)
  const kept = await keepByLease(call)
  try {
    await pinWhilePaused(call, pin)
    return kept
  } catch (error) {
    await kept.release()
    throw error
  }
}

/** Looks up the address for each call: the server may have restarted on another port. */
function callServer(dataFolder: string, serviceKey: string | null): AdminCall {
  return async (method, path, body) => {
    const url = await findAddress(dataFolder)
    if (url === null || serviceKey === null) throw new EngineError('unavailable', `${noAddress} ${later}`)
    const silent = `The server at ${url} does not answer. ${later}`
    return createAdminCall({ url, base: '/api/backup', serviceKey, silent })(method, path, body)
  }
}

async function pinWhilePaused(call: AdminCall, pin: () => void): Promise<void> {
  for (let tries = 0; tries < backupPauseAttemptsMax; tries++) {
    const { id } = await call<{ id: string }>('POST', '/hold')
    pin()
    if (await isReleased(call('DELETE', `/hold/${id}`))) return
  }
  throw new EngineError('unavailable', `The server is too busy to pause writes. ${later}`)
}

const noAddress = 'Another process has this data folder and has not published its address.'
const later = 'Try again once it is ready, or stop it.'

/** Null while another process has locked the folder. */
function tryLock(folder: string): { close(): void } | null {
  try {
    return lockFolder(folder, folderTaken)
  } catch (error) {
    if (error instanceof EngineError) return null
    throw error
  }
}

/** False if the pause had expired before. */
async function isReleased(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false
    throw error
  }
}
