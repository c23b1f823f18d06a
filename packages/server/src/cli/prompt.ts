/** Prompts for passwords and secrets without echo. */
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { UsageError } from './command.ts'

/** Suppresses the echo. */
const noOutput = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Asks questions at the terminal without echo. */
async function ask(questions: readonly string[], missing: string): Promise<string[]> {
  // The echo is off from here on, so prompts are written after this.
  const lines = createInterface({ input: process.stdin, output: noOutput(), terminal: true })
  const answers: string[] = []
  try {
    for (const question of questions) {
      process.stderr.write(question)
      try {
        answers.push(await nextLine(lines, missing))
      } finally {
        process.stderr.write('\n')
      }
    }
    return answers
  } finally {
    lines.close()
  }
}

/** Reads a password twice. Throws `UsageError` without a terminal or if the two differ. */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) throw new UsageError('Cannot prompt for a password without a terminal. Use --password.')
  const [password = '', repeated] = await ask(['Password: ', 'Repeat password: '], 'No password was given.')
  if (repeated !== password) throw new UsageError('The passwords do not match.')
  return password
}

/** Reads a secret: from a terminal without echo, or all of standard input without the line break at its end. */
export async function readSecret(question: string): Promise<string> {
  const missing = 'No value was given.'
  const value = process.stdin.isTTY
    ? (await ask([question], missing))[0]
    : (await text(process.stdin)).replace(/\r?\n$/, '')
  if (!value) throw new UsageError(missing)
  return value
}

/** Ctrl-C and the end of the input close without a line. */
const nextLine = (lines: Interface, missing: string): Promise<string> =>
  new Promise((resolve, reject) => {
    lines.once('close', () => reject(new UsageError(missing)))
    lines.once('line', resolve)
  })
