/**
 * `npm run check`: static checks of the source. The last line is `Checks: N passed, N failed`.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRepository } from './tidy/repository.ts'
import { findUntidy } from './tidy.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Runs the program of a package under this Bun, with its output shown. */
function runTool(script: string, ...args: string[]): boolean {
  const { exitCode } = Bun.spawnSync([process.execPath, join(root, 'node_modules', script), ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return exitCode === 0
}

function checkTidiness(): boolean {
  const mistakes = findUntidy(readRepository(root))
  for (const mistake of mistakes) console.log(mistake)
  return mistakes.length === 0
}

const checks: Readonly<Record<string, () => boolean>> = {
  types: () => runTool('typescript/bin/tsc', '-p', '.'),
  'lint and format': () => runTool('@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '.'),
  'unused code': () => runTool('knip/bin/knip.js', '--no-progress'),
  tidiness: checkTidiness,
}

let failed = 0
for (const [name, check] of Object.entries(checks)) {
  const isGood = check()
  if (!isGood) failed++
  console.log(`${isGood ? 'ok' : 'FAILED'}: ${name}`)
}
console.log(`Checks: ${Object.keys(checks).length - failed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
