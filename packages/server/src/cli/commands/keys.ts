/** `plinth keys`: lists and rotates signing keys, and generates a VAPID key pair for web push. */
import { createECDH } from 'node:crypto'
import type { KeyView } from '../../features/users/admin/keys.ts'
import { openAdminClient } from '../admin-client.ts'
import { type Command, UsageError } from '../command.ts'
import { configOptions } from '../serve.ts'

export const keysCommand: Command = {
  name: 'keys',
  summary: 'List or rotate the signing keys of tokens; generate a key pair for web push',
  operands: ['<action>'],
  options: configOptions,
  details: `Actions:
  list      Newest first: the id, creation time and retirement time
  rotate    Sign with a new key from now on; sessions are not affected
  vapid     Print a new key pair for web push (push.vapid in the configuration)

Tokens signed with older keys are valid until they expire. To revoke tokens at once, use
\`plinth users revoke\`, or change PLINTH_SECRET, which signs out all users.
Works as \`plinth users\` does, with the server running or not.`,
  async run({ operands: [action = ''], options, terminal }) {
    if (action === 'vapid') {
      for (const line of newVapidLines()) terminal.out(line)
      return 0
    }
    if (action !== 'list' && action !== 'rotate')
      throw new UsageError(`"${action}" is not an action of \`plinth keys\`. Available: list, rotate, vapid.`)
    const client = await openAdminClient(options, terminal)
    try {
      const shown = action === 'list' ? await client.listKeys() : [await client.rotateKeys()]
      for (const key of shown) terminal.out(lineOf(key))
      return 0
    } finally {
      await client.close()
    }
  },
}

const lineOf = ({ kid, createdAt, retiredAt }: KeyView): string =>
  [kid, createdAt ?? 'from the beginning', retiredAt === null ? 'signs' : `until ${retiredAt}`].join('  ')

/** Both as base64url, as web push libraries expect. */
function newVapidLines(): string[] {
  const keys = createECDH('prime256v1')
  const publicKey = keys.generateKeys('base64url')
  // A number below 2^248 has fewer bytes.
  const privateKey = Buffer.from(keys.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
  return [`publicKey: ${publicKey}`, `privateKey: ${privateKey}`]
}
