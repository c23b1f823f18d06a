/** `plinth restore`: restores a data folder from a backup. */
import { resolve } from 'node:path'
import { loadDataLocation } from '../../../config/load.ts'
import { BackupError } from '../../../engines/backup/archive.ts'
import { restore } from '../../../engines/backup/restore.ts'
import { parseManifest, readPassphrase, type Secrets, unsealSecrets } from '../../backup-manifest.ts'
import type { Command } from '../../command.ts'

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'Restore a data folder from a backup',
  operands: ['<file>'],
  options: {
    data: { value: '<folder>', help: 'The data folder, missing or empty (default ./data)' },
    'passphrase-file': { value: '<file>', help: 'The passphrase of the backup' },
    'with-secrets': { help: 'Also restore the secret and the service key; requires the passphrase' },
  },
  details: `Every file is verified against its checksum before the folder gets its final name, so a
failed restore changes nothing. Afterwards start the server with the same configuration.
The secret and the service key are only restored with --with-secrets, because the author
of an archive could otherwise sign tokens for your server.`,
  async run({ operands: [operand = ''], options, terminal }) {
    const { dataFolder } = loadDataLocation(options)
    const archive = resolve(operand)
    const passphraseFile = options['passphrase-file']
    if (passphraseFile !== undefined && options['with-secrets'] === undefined) throw new BackupError(wantsFlag)
    const passphrase = passphraseFile === undefined ? null : await readPassphrase(passphraseFile)
    let secrets: Secrets = new Map()
    let createdAt = ''
    let hadSecrets = false
    const report = await restore({
      archive,
      folder: dataFolder,
      onHead(text) {
        const head = parseManifest(text)
        createdAt = head.createdAt
        hadSecrets = head.secrets !== null
        if (options['with-secrets'] === undefined) return
        if (head.secrets === null) throw new BackupError(withoutSecrets)
        if (passphrase === null) throw new BackupError(needsPassphrase)
        secrets = unsealSecrets(head.secrets, passphrase)
      },
      moreFiles: () => secrets,
    })
    terminal.out(`${dataFolder}: ${report.files} files, ${report.bytes} bytes, as they were on ${createdAt}`)
    if (secrets.size === 0) terminal.error(`${hadSecrets ? notRestored : noSecrets}: ${giveOwn}`)
    return 0
  },
}

const withoutSecrets = 'The backup contains no secrets. Restore it without --with-secrets.'
const wantsFlag = 'A passphrase is only needed for secrets: add --with-secrets to restore them.'
const noSecrets = 'The backup contains no secrets'
const notRestored = 'The secrets of the backup were not restored'
const giveOwn = 'give the server its own as PLINTH_SECRET, or all users have to sign in again.'
const needsPassphrase =
  'The secrets of the backup are encrypted: give the --passphrase-file, or restore without --with-secrets.'
