/** What `plinth types` writes gives clients the same types as the configuration itself. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Compilation, type Compiler, compile, compilers, createProject, readFixture } from './compile.ts'

const repository = join(import.meta.dir, '../../../..')
const types = join(repository, 'packages/client/src/types')
const examples = readdirSync(join(repository, 'examples'), { withFileTypes: true })
  .filter(
    (entry) =>
      entry.isDirectory() && readdirSync(join(repository, 'examples', entry.name)).includes('plinth.config.ts'),
  )
  .map(({ name }) => name)

/** Types of all tables and names of a configuration, as clients see them. */
const comparison = `
import type * as Names from '${types}/config-shape.ts'
import type { Insert, Patch, Row } from '${types}/rows.ts'
import type { Include, TableScope } from '${types}/relations.ts'

export type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
export type Seen<C> = {
  tables: {
    [N in Names.NamespaceName<C>]: {
      instance: Names.InstanceArguments<C, N>
      tables: {
        [T in Names.TableName<C, N>]: {
          row: Row<Names.TableDeclaration<C, N, T>>
          insert: Insert<Names.TableDeclaration<C, N, T>>
          patch: Patch<Names.TableDeclaration<C, N, T>>
          relations: keyof Include<TableScope<Names.TablesOf<C, N>, T>>
        }
      }
    }
  }
  buckets: Names.BucketName<C>
  rooms: { [N in Names.RoomNamespace<C>]: keyof Names.RoomActions<C, N> }
  broadcasts: Names.BroadcastName<C>
  others: [Names.KvName<C>, Names.VectorName<C>, Names.SqlName<C>]
}
`

/** The example key of RFC 8291, which the push example reads from the environment. */
const publicKey = 'BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8'

/** Runs `plinth types` for a configuration. */
async function writeTypes(config: string, out: string): Promise<void> {
  const main = join(repository, 'packages/server/src/main.ts')
  const run = Bun.spawn([process.execPath, main, 'types', '--config', config, '--out', out], {
    env: { ...process.env, VAPID_PUBLIC_KEY: publicKey },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const errors = await new Response(run.stderr).text()
  expect({ code: await run.exited, errors }).toEqual({ code: 0, errors: '' })
}

describe.each(Object.keys(compilers) as Compiler[])('TypeScript %s', (compiler) => {
  const project = createProject()
  let compiled: Compilation

  beforeAll(async () => {
    const source = join(project.folder, 'src')
    project.write('comparison.ts', comparison)
    project.write('environment.d.ts', 'declare const process: { readonly env: Record<string, string | undefined> }')
    // The module that users write has the configuration as its default export.
    project.write('blog-config.ts', `${readFixture('blog-config.ts')}\nexport default config\n`)
    const configs = [
      ['blog', join(source, 'blog-config.ts')],
      ...examples.map((name) => [name, join(repository, 'examples', name, 'plinth.config.ts')]),
    ] as const
    for (const [name = '', path = ''] of configs) {
      await writeTypes(path, join(source, `${name}.d.ts`))
      project.write(
        `${name}-same.ts`,
        `import type { Same, Seen } from './comparison'
import type { Config } from './${name}'
import type config from '${path}'
export const same: Same<Seen<typeof config>, Seen<Config>> = true
`,
      )
    }
    project.write(
      'must-compile.ts',
      readFixture('must-compile.ts').replace(
        /import type \{ Config, Functions \} from '.\/blog-config.ts'/,
        "import type { Config } from './blog'\nimport type { Functions } from './blog-config.ts'",
      ),
    )
    compiled = await compile(compiler, project.folder)
  }, 300_000)

  afterAll(() => project.remove())

  test(`the uses of the client and the configurations of ${examples.length} examples have the same types`, () => {
    expect(examples.length).toBeGreaterThan(2)
    expect(compiled.diagnostics).toEqual([])
  })
})
