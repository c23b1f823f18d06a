/** `plinth keys`: the keys that sign tokens, having a new one sign, and a pair for web push. */
import { createECDH } from 'node:crypto'
import type { KeyView } from '../../features/users/admin/keys.ts'
import { openAdminClient } from '../admin-client.ts'
import { type Command, UsageError } from '../command.ts'
import { configOptions } from '../serve.ts'

export const keysCommand: Command = {
  name: 'keys',
  summary: 'List or rotate the keys that sign tokens; make a pair for web push',
  operands: ['<action>'],
  options: configOptions,
  details: `Actions:
  list      Newest first: the id, since when it signs, and since when it signs no more
  rotate    Sign with a new key from now on; nobody is signed out
  vapid     Print a new pair of keys for web push (push.vapid of the configuration)

Tokens that older keys have signed are good until they expire. To end tokens at once,
\`plinth users revoke\` somebody, or give the server another PLINTH_SECRET, which ends all.
Works as \`plinth users\` does, with the server running or not.`,
  async run({ operands: [action = ''], options, terminal }) {
    if (action === 'vapid') {
      for (const line of newVapidLines()) terminal.out(line)
      return 0
    }
    if (action !== 'list' && action !== 'rotate')
      throw new UsageError(`"${action}" is no action of \`plinth keys\`. There are: list, rotate, vapid.`)
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

/** Both as base64url, as every library of web push has them. */
function newVapidLines(): string[] {
  const keys = createECDH('prime256v1')
  const publicKey = keys.generateKeys('base64url')
  // A number below 2^248 has fewer bytes.
  const privateKey = Buffer.from(keys.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
  return [`publicKey: ${publicKey}`, `privateKey: ${privateKey}`]
}
