/** Asking for a password at a terminal, where neither the screen nor the history of the shell keeps it. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { UsageError } from './command.ts'

/** What is typed is shown nowhere. */
const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** A password, typed twice. Throws `UsageError` where nobody is there to type, or two different things are typed. */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError('There is no terminal to ask for the password: give it with --password.')
  // From here on the terminal shows nothing, so the questions come after.
  const lines = createInterface({ input: process.stdin, output: nowhere(), terminal: true })
  const ask = async (question: string): Promise<string> => {
    process.stderr.write(question)
    try {
      return await nextLine(lines)
    } finally {
      process.stderr.write('\n')
    }
  }
  try {
    const password = await ask('Password: ')
    if ((await ask('Once more: ')) !== password) throw new UsageError('The two passwords differ.')
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
