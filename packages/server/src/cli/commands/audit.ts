/** `plinth audit`: verifies the chain of the audit log, whether the server runs or not. */
import { openAdminClient } from '../admin-client.ts'
import { type Command, UsageError } from '../command.ts'
import { configOptions } from '../serve.ts'

export const auditCommand: Command = {
  name: 'audit',
  summary: 'Verify the log of what administrators and service keys have changed',
  operands: ['<action>'],
  options: {
    hash: { value: '<hash>', help: 'a hash that was noted earlier, which must be in the chain' },
    ...configOptions,
  },
  details: `Actions:
  verify    Recompute the hash of every entry; exit with 1 if one does not fit

Each entry's hash covers the previous one, so that a changed, removed or inserted entry is
found. Who can write to the database can also compute a whole new chain: note the newest hash
elsewhere, and verify with --hash that it is still there. Entries older than the newest
million are removed by the server; the chain then begins after them.
Works as \`plinth users\` does, with the server running or not.`,
  async run({ operands: [action = ''], options, terminal }) {
    if (action !== 'verify')
      throw new UsageError(`"${action}" is not an action of \`plinth audit\`. Available: verify.`)
    const client = await openAdminClient(options, terminal)
    try {
      const { ok, entries, removed, hash, broken, contains } = await client.verifyAudit(options.hash ?? null)
      const before = removed === 0 ? '' : `, after ${removed} that were removed`
      terminal.out(`${entries} entries fit${before}. Newest hash: ${hash ?? 'none'}`)
      if (broken) terminal.error(`Entry ${broken.seq} (${broken.id}) does not fit: ${broken.reason}.`)
      else if (contains === false) terminal.error('The given hash is not in the chain.')
      return ok ? 0 : 1
    } finally {
      await client.close()
    }
  },
}
