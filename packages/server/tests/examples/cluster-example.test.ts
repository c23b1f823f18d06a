/** The cluster example: a node is killed under load, and no acknowledged write is lost. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { provideHaproxy } from '../../../../scripts/servers/programs.ts'

const start = join(import.meta.dir, '../../../../examples/cluster/start.ts')
const { PLINTH_TEST_DATABASE_URL, PLINTH_TEST_REDIS_URL } = process.env

if (PLINTH_TEST_DATABASE_URL && PLINTH_TEST_REDIS_URL && provideHaproxy() !== null)
  test('[DB-TABLE-16, DB-IDEM-6] killing one of three nodes under load loses no acknowledged write on any node', async () => {
    const options = ['--once', '--port', '0', '--only', 'LI', '--writes', '450']
    const child = Bun.spawn([process.execPath, start, ...options], {
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect({ code: await child.exited, errors }).toEqual({ code: 0, errors: '' })
    expect(output).toContain('node-2 was killed (SIGKILL)')
    for (const name of ['node-1', 'node-2', 'node-3'])
      expect(output).toContain(`${name} has 450 notes, a counter total of 450, and 0 missing.`)
  })
