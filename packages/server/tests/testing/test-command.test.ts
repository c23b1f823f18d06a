/** `plinth test` in a project as its users have it. */
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFunctionProject } from '../harness/functions.ts'

const repository = join(import.meta.dir, '../../../..')
const project = openFunctionProject(`export const greet = rpc({ caller: 'anyone' }, (name) => 'Hello ' + name)`)
afterAll(() => project.remove())

const write = (name: string, text: string): void => writeFileSync(join(project.folder, name), text)
write('plinth.config.ts', "import { defineConfig } from 'plinth'\n\nexport default defineConfig({})\n")
mkdirSync(join(project.folder, 'node_modules'))
symlinkSync(join(repository, 'packages/server'), join(project.folder, 'node_modules/plinth'))
write(
  'greet.test.ts',
  `import { expect, test } from 'bun:test'
import { testServer } from 'plinth/testing'
test('greets', async () => {
  const t = await testServer()
  expect(await (await t.as(null)).call('greet', 'Ada')).toBe('Hello Ada')
  expect(process.env.DATABASE_URL).toBeUndefined()
  await t.close()
})
`,
)
write('fails.test.ts', "import { test } from 'bun:test'\ntest('fails', () => {\n  throw new Error('no')\n})\n")

function run(...words: string[]) {
  const { exitCode, stderr } = Bun.spawnSync(
    [process.execPath, join(repository, 'packages/server/bin/plinth.mjs'), 'test', ...words],
    {
      cwd: project.folder,
      env: { PATH: Bun.env.PATH ?? '', DATABASE_URL: 'postgres://nowhere/app' },
    },
  )
  return { exitCode, output: stderr.toString() }
}

test('[FN-TEST-8] plinth test runs the tests of the project, without the databases of a server in use', () => {
  const { exitCode, output } = run('greet')
  expect(output).toContain('1 pass')
  expect(exitCode).toBe(0)
})

test('[FN-TEST-8] plinth test exits with 1 if a test fails', () => {
  const { exitCode, output } = run()
  expect(output).toContain('1 fail')
  expect(exitCode).toBe(1)
})
