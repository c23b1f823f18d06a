/** `plinth init`: creates a small working configuration. Never overwrites existing files. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { ConfigError } from '../../config/issues.ts'
import type { Command, Terminal } from '../command.ts'

const configFile = 'plinth.config.ts'

export const initCommand: Command = {
  name: 'init',
  summary: 'Create a configuration',
  operands: ['[folder]'],
  options: {},
  details: `Writes ${configFile}, .gitignore and README.md into the folder (default: this one), which may
contain other files. Existing files are not changed.`,
  async run({ operands: [folder = '.'], terminal }) {
    await mkdir(folder, { recursive: true })
    if (!(await writeNew(join(folder, configFile), configText)))
      throw new ConfigError(`${join(folder, configFile)} already exists; it was not changed.`)
    terminal.out(`Wrote ${join(folder, configFile)}`)
    await writeOrKeep(
      terminal,
      join(folder, '.gitignore'),
      ignoreText,
      'Add the line data/ to it: that folder contains secrets.',
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

/** False if the file exists. */
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

const configText = `// The complete backend. Without a rule that allows it, only the service key may do something.
import { defineConfig, or } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: {
          // Every record also has id, createdAt and updatedAt.
          schema: {
            title: { type: 'string', required: true, max: 200 },
            body: { type: 'text' },
            published: { type: 'boolean', default: false },
            authorId: { type: 'string', required: true },
          },
          indexes: [{ fields: ['authorId', 'createdAt'] }],
          search: ['title', 'body'],
          // A rule is true, false, or a filter over the record; auth is null for anonymous callers.
          access: {
            // Published notes are public; authors also read their own drafts.
            read: (auth) => (auth ? or({ published: true }, { authorId: auth.id }) : { published: true }),
            // Users write only their own notes and cannot reassign them: the rule is checked before and after.
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

The backend is defined in \`plinth.config.ts\`. Start it; changes to the file are applied at once:

\`\`\`sh
plinth dev
\`\`\`

Write a note as the user Alice. \`plinth token\` prints an access token; rules see its user as \`auth\`:

\`\`\`sh
curl -H "Authorization: Bearer $(plinth token alice)" -H 'Content-Type: application/json' \\
  -d '{"title": "Hello", "published": true, "authorId": "alice"}' \\
  http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

Read the published notes:

\`\`\`sh
curl http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

Read everything with the service key, as a server would:

\`\`\`sh
curl -H "X-Platform-Service-Key: $(cat data/service-key)" http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

All endpoints: http://127.0.0.1:4100/docs. \`data/\` contains secrets: keep it private, and back it up.
`
