/** React and the hooks on it, in one of the supported versions. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type ReactLibraries = typeof import('./react-entry.ts')

/** Loads the libraries, bundled so that each version has its own hooks. Needs a document. */
export async function openReact(version: 18 | 19): Promise<ReactLibraries> {
  const alias = (path: string): string => (version === 18 ? path.replace(/^react(-dom)?/, '$&-18') : path)
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, 'react-entry.ts')],
    target: 'bun',
    define: { 'process.env.NODE_ENV': '"development"' },
    plugins: [
      {
        name: 'react version',
        setup(build) {
          build.onResolve({ filter: /^react(-dom)?(\/.*)?$/ }, ({ path }) => ({
            path: Bun.resolveSync(alias(path), import.meta.dir),
          }))
        },
      },
    ],
  })
  const folder = mkdtempSync(join(tmpdir(), 'plinth-react-'))
  try {
    const file = join(folder, 'bundle.js')
    await Bun.write(file, outputs[0] as Blob)
    return await import(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
