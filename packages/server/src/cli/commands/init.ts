/** `plinth init`: creates a small working configuration. Existing files are kept; a `package.json` gains scripts. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { ConfigError } from '../../config/issues.ts'
import type { Command, Terminal } from '../command.ts'

const configFile = 'plinth.config.ts'
const functionsFile = 'functions/index.ts'

export const initCommand: Command = {
  name: 'init',
  summary: 'Create a configuration',
  operands: ['[folder]'],
  options: {},
  details: `Writes ${configFile}, functions/index.ts, .gitignore and README.md into the folder (default: this one), which may
contain other files. Existing files are not changed, except that a package.json gets the
scripts dev and start if it has none of these names.`,
  async run({ operands: [folder = '.'], terminal }) {
    await mkdir(folder, { recursive: true })
    if (!(await writeNew(join(folder, configFile), configText)))
      throw new ConfigError(`${join(folder, configFile)} already exists; it was not changed.`)
    terminal.out(`Wrote ${join(folder, configFile)}`)
    await mkdir(join(folder, 'functions'), { recursive: true })
    await writeOrKeep(terminal, join(folder, functionsFile), functionsText, 'It was not needed.')
    await writeOrKeep(
      terminal,
      join(folder, '.gitignore'),
      ignoreText,
      'Add the line data/ to it: that folder contains secrets.',
    )
    await writeOrKeep(terminal, join(folder, 'README.md'), readmeText, 'It was not needed.')
    const hasScripts = await addScripts(terminal, join(folder, 'package.json'))
    const enter = relative('.', folder) === '' ? '' : `cd ${folder} && `
    terminal.out(`\nNext: ${enter}${hasScripts ? 'npm run dev' : 'plinth dev'}`)
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

interface Manifest {
  readonly scripts?: Readonly<Record<string, unknown>>
}

const scripts = { dev: 'plinth dev', start: 'plinth start' }

/**
 * Adds the scripts to a manifest that lacks them, in its own indentation. Returns whether `npm run dev` starts Plinth;
 * false if there is no manifest or it does not parse.
 */
async function addScripts(terminal: Terminal, path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => null)
  const manifest = text === null ? null : parseManifest(text)
  if (text === null || manifest === null) return false
  const missing = Object.entries(scripts).filter(([name]) => manifest.scripts?.[name] === undefined)
  if (missing.length > 0) {
    const changed = { ...manifest, scripts: { ...manifest.scripts, ...Object.fromEntries(missing) } }
    const indentation = /^[ \t]+(?=")/m.exec(text)?.[0] ?? '  '
    await writeFile(path, `${JSON.stringify(changed, null, indentation)}\n`)
    const names = missing.map(([name]) => name).join(' and ')
    terminal.out(`Added to ${path}: the script${missing.length > 1 ? 's' : ''} ${names}`)
  }
  return (manifest.scripts?.dev ?? scripts.dev) === scripts.dev
}

function parseManifest(text: string): Manifest | null {
  try {
    const manifest: unknown = JSON.parse(text)
    return typeof manifest === 'object' && !Array.isArray(manifest) ? manifest : null
  } catch {
    return null
  }
}

const ignoreText = `# Records, files and secrets of the server.
data/
node_modules/
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

const functionsText = `// Code that runs on the server: what this file exports are its functions. Saved changes are served at once.
import { functionsFor, HttpError } from 'plinth/functions'
import type config from '../plinth.config'

const { rpc } = functionsFor<typeof config>()

/** POST /api/fn/hello with {"name": "Ada"}, or with the client: plinth.call('hello', { name: 'Ada' }). */
export const hello = rpc({ caller: 'anyone', limit: '100/m per user' }, ({ name }: { name?: string }, ctx) => {
  if (!name) throw new HttpError(400, 'no-name', 'Send a name')
  ctx.log.info('A caller said hello', { name })
  return { message: \`Hello, \${name}!\` }
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

Call a function of \`functions/index.ts\`:

\`\`\`sh
curl -H 'Content-Type: application/json' -d '{"name": "Ada"}' http://127.0.0.1:4100/api/fn/hello
\`\`\`

Read everything with the service key, as a server would:

\`\`\`sh
curl -H "X-Platform-Service-Key: $(cat data/service-key)" http://127.0.0.1:4100/api/db/shared/tables/notes
\`\`\`

All endpoints: http://127.0.0.1:4100/docs. \`data/\` contains secrets: keep it private, and back it up.
`
