/** `plinth restore`: a data folder from what `plinth backup` wrote. */
import { resolve } from 'node:path'
import { loadDataLocation } from '../../config/load.ts'
import { BackupError } from '../../engines/backup/archive.ts'
import { restore } from '../../engines/backup/restore.ts'
import { parseManifest, readPassphrase, type Secrets, unsealSecrets } from '../backup-manifest.ts'
import type { Command } from '../command.ts'

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'Make a data folder from a backup',
  operands: ['<file>'],
  options: {
    data: { value: '<folder>', help: 'The data folder, missing or empty (default ./data)' },
    'passphrase-file': { value: '<file>', help: 'The words that the backup was made with' },
    'with-secrets': { help: 'Also take the secret and the service key, which needs the passphrase' },
  },
  details: `Every file is compared with its checksum before the folder gets its name, so a restore
that fails changes nothing. Start the server on the folder when it is done, with the
configuration it had. The secret and the service key are never taken from an archive
unless you say --with-secrets: with them its author could sign tokens for your server.`,
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
    if (secrets.size === 0) terminal.error(`${hadSecrets ? leftOut : heldNone}: ${giveOwn}`)
    return 0
  },
}

const withoutSecrets = 'The backup holds no secrets. Restore it without --with-secrets.'
const wantsFlag = 'A passphrase is only needed for secrets: say --with-secrets to take them from the backup.'
const heldNone = 'The backup held no secrets'
const leftOut = 'The secrets of the backup were left out'
const giveOwn = 'give the server its own as PLINTH_SECRET, or everybody has to sign in again.'
const needsPassphrase =
  'The secrets of the backup are encrypted: give the --passphrase-file, or restore without --with-secrets.'
