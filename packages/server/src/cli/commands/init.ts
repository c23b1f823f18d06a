/** `plinth init`: a small working configuration with everything to try it. Never writes over a file that is there. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { ConfigError } from '../../config/issues.ts'
import type { Command, Terminal } from '../command.ts'

const configFile = 'plinth.config.ts'

export const initCommand: Command = {
  name: 'init',
  summary: 'Write a first configuration',
  operands: ['[folder]'],
  options: {},
  details: `Writes ${configFile}, .gitignore and README.md into the folder (default: this one), which may
hold other files. What is there already is left as it is.`,
  async run({ operands: [folder = '.'], terminal }) {
    await mkdir(folder, { recursive: true })
    if (!(await writeNew(join(folder, configFile), configText)))
      throw new ConfigError(`${join(folder, configFile)} exists already; it was left as it is.`)
    terminal.out(`Wrote ${join(folder, configFile)}`)
    await writeOrKeep(
      terminal,
      join(folder, '.gitignore'),
      ignoreText,
      'Add the line data/ to it: secrets are kept there.',
    )
    await writeOrKeep(terminal, join(folder, 'README.md'), readmeText, 'It was not needed.')
    const enter = relative('.', folder) === '' ? '' : `cd ${folder} && `
    terminal.out(`\nNext: ${enter}plinth dev`)
    return 0
  },
}

async function writeOrKeep(terminal: Terminal, path: string, text: string, hint: string): Promise<void> {
  terminal.out((await writeNew(path, text)) ? `Wrote ${path}` : `Kept ${path}. ${hint}`)
}

/** False where the file exists. */
async function writeNew(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

const ignoreText = `# Records, files and secrets of the server.
data/
`

const configText = `// The whole backend. What no rule allows, nobody may do but the service key.
import { defineConfig, or } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: {
          // Beside these, every record has an id, createdAt and updatedAt.
          schema: {
            title: { type: 'string', required: true, max: 200 },
            body: { type: 'text' },
            published: { type: 'boolean', default: false },
            authorId: { type: 'string', required: true },
          },
          indexes: [{ fields: ['authorId', 'createdAt'] }],
          search: ['title', 'body'],
          // A rule is true, false, or a filter over the record; auth is null for those who are not signed in.
          access: {
            // Anybody reads what is published, authors read everything of their own.
            read: (auth) => (auth ? or({ published: true }, { authorId: auth.id }) : { published: true }),
            // Users write under their own name, and cannot give a note away: the rule holds before and after.
            insert: (auth) => auth && { authorId: auth.id },
            update: (auth) => auth && { authorId: auth.id },
            delete: (auth) => auth && { authorId: auth.id },
          },
        },
      },
    },
  },
})
`

const readmeText = `# Notes

The backend is \`plinth.config.ts\`. Start it, and it serves every change you make there:

\`\`\`sh
plinth dev
\`\`\`

Write a note as the user Alice. \`plinth token\` makes her token; the rules of \`notes\` see it as \`auth\`:

\`\`\`sh
curl -H "Authorization: Bearer $(plinth token alice)" -H 'Content-Type: application/json' \\
  -d '{"title": "Hello", "published": true, "authorId": "alice"}' \\
  http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

Read what everybody may read:

\`\`\`sh
curl http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

Read everything, as a server does that holds the service key:

\`\`\`sh
curl -H "X-Platform-Service-Key: $(cat data/service-key)" http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

All endpoints: http://127.0.0.1:4100/docs. Secrets lie in \`data/\`: keep it private, and back it up.
`
