/** The cluster example does what its README says: a node dies under load, and nothing that was acknowledged is lost. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { provideHaproxy } from '../../../../scripts/servers/programs.ts'

const start = join(import.meta.dir, '../../../../examples/cluster/start.ts')
const { PLINTH_TEST_DATABASE_URL, PLINTH_TEST_REDIS_URL } = process.env

if (PLINTH_TEST_DATABASE_URL && PLINTH_TEST_REDIS_URL && provideHaproxy() !== null)
  test('[DB-TABLE-16, DB-IDEM-6] a node of three is killed under load, and every acknowledged write is at every node', async () => {
    const words = ['--once', '--port', '0', '--only', 'LI', '--writes', '450']
    const child = Bun.spawn([process.execPath, start, ...words], {
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [output, mistakes] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect({ code: await child.exited, mistakes }).toEqual({ code: 0, mistakes: '' })
    expect(output).toContain('node-2 is killed (SIGKILL)')
    for (const name of ['node-1', 'node-2', 'node-3'])
      expect(output).toContain(`${name} has 450 notes, counts 450, and lacks 0.`)
  })
