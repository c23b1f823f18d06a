/** Prompts for a password without echo. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { UsageError } from './command.ts'

/** Suppresses the echo. */
const noOutput = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Reads a password twice. Throws `UsageError` without a terminal or if the two differ. */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) throw new UsageError('Cannot prompt for a password without a terminal. Use --password.')
  // The echo is off from here on, so prompts are written after this.
  const lines = createInterface({ input: process.stdin, output: noOutput(), terminal: true })
  const prompt = async (question: string): Promise<string> => {
    process.stderr.write(question)
    try {
      return await nextLine(lines)
    } finally {
      process.stderr.write('\n')
    }
  }
  try {
    const password = await prompt('Password: ')
    if ((await prompt('Repeat password: ')) !== password) throw new UsageError('The passwords do not match.')
    return password
  } finally {
    lines.close()
  }
}

/** Ctrl-C and the end of the input close without a line. */
const nextLine = (lines: Interface): Promise<string> =>
  new Promise((resolve, reject) => {
    lines.once('close', () => reject(new UsageError('No password was given.')))
    lines.once('line', resolve)
  })
