/** `plinth verify`: restores a backup into a temporary folder and checks it. */
import { resolve } from 'node:path'
import { systemClock } from '../../../base/clock.ts'
import { loadDataLocation } from '../../../config/load.ts'
import { verify } from '../../../engines/backup/verify.ts'
import { parseManifest } from '../../backup-manifest.ts'
import type { Command } from '../../command.ts'

export const verifyCommand: Command = {
  name: 'verify',
  summary: 'Check that a backup can be restored',
  operands: ['<file>'],
  options: {},
  details: `Restores the backup into a temporary folder beside it, checks every checksum, then checks
the folder as \`plinth doctor\` does, and removes it. The result is stored in <file>.verified.
Needs as much free space as the data. The server may keep running.
Exits with 0 if the backup is intact, else with 1.`,
  async run({ operands: [operand = ''], terminal }) {
    const archive = resolve(operand)
    let createdAt = ''
    const { files, bytes, problems } = await verify({
      archive,
      onHead(text) {
        createdAt = parseManifest(text).createdAt
      },
      hasStore: loadDataLocation({}).hasStore,
      nowMs: systemClock.now(),
    })
    if (problems.length === 0) {
      terminal.out(`${archive} of ${createdAt} is intact: ${files} files, ${bytes} bytes`)
      return 0
    }
    terminal.error(`${archive} is damaged:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    return 1
  },
}
