/**
 * `npm run pictures`: takes every picture of the guides again, from a server with the data of a shop, and stores them
 * in `docs/images`. Commit those that show a change.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { provideChromium } from './servers/programs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = provideChromium()
if (program === null) throw new Error('Pictures need a Chromium; install the package chromium')
const { status } = spawnSync(process.execPath, ['test', 'packages/dashboard/tests/pictures', '--timeout', '120000'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PLINTH_TEST_CHROMIUM: program, PLINTH_TEST_PICTURES: `${root}docs/images` },
})
process.exit(status ?? 1)
