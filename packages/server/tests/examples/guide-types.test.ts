/** The functions of the guide compile as they are written, against a configuration with the tables that they name. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseFences } from '../harness/examples/documents.ts'

const repository = join(import.meta.dir, '../../../..')

const config = `import { defineConfig } from 'plinth'

const text = { type: 'string', required: true } as const

export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: { schema: { title: text, slug: text, status: text } },
        invitations: { schema: { email: text, role: text, team: text } },
        members: { schema: { team: text, plan: text } },
      },
    },
  },
  storage: { buckets: { avatars: {} } },
})
`

/** Modules of the guide with functions for a table or for accounts, by the line of their fence. */
const guide = await Bun.file(join(repository, 'docs/guides/functions.md')).text()
const samples = parseFences(guide).filter(({ text }) => /\{ (?:auth|before) \} = functionsFor/.test(text))

/** The errors of the compiler, with the options of the repository. */
function compile(modules: ReadonlyMap<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-guide-types-'))
  try {
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
    mkdirSync(join(folder, 'functions'))
    writeFileSync(join(folder, 'plinth.config.ts'), config)
    for (const [name, content] of modules) writeFileSync(join(folder, 'functions', name), content)
    const tsconfig = {
      extends: join(repository, 'tsconfig.json'),
      compilerOptions: { typeRoots: [join(repository, 'node_modules/@types')] },
      include: ['functions'],
      exclude: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
    const compiler = join(repository, 'node_modules/typescript/bin/tsc')
    const { stdout, stderr } = Bun.spawnSync(['node', compiler, '--pretty', 'false', '-p', folder])
    return `${stdout}${stderr}`
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('[FN-BEFORE-1, FN-AUTH-1, FN-AUTH-7, FN-AUTH-12] the functions of the guide compile', () => {
  expect(samples).toHaveLength(2)
  expect(compile(new Map(samples.map(({ text, line }) => [`line-${line}.ts`, text])))).toBe('')
})

test('a mistake in a function of the guide is found', () => {
  const sample = samples.map(({ text }) => text).find((text) => text.includes('goodbye')) ?? ''
  const broken = sample.replace('user.email)', 'user.mail)').replace("files('avatars')", "files('avatrs')")
  const errors = compile(new Map([['broken.ts', broken]]))
  expect(errors).toContain("Property 'mail' does not exist")
  expect(errors).toContain('avatrs')
})
