/** Bundles of the client as an application ships them: esbuild, minified ESM for es2022. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

export interface Bundle {
  /** After gzip -9. */
  readonly bytes: number
  /** Source files that are in the bundle. */
  readonly files: readonly string[]
}

/** Bundles the program `contents`, whose imports are resolved in `folder`. */
export async function bundle(contents: string, folder: string, external: readonly string[] = []): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: folder, loader: 'ts' },
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    external: [...external],
    metafile: true,
    logLevel: 'silent',
  })
  const [output] = Object.values(metafile.outputs)
  const files = Object.entries(output?.inputs ?? {}).flatMap(([file, { bytesInOutput }]) =>
    bytesInOutput > 0 ? [file] : [],
  )
  return { bytes: gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length, files }
}

const source = `${import.meta.dirname}/../../src`

/** How a program lists a feature: `persist` takes options. */
const listed = (feature: string): string => (feature === 'persist' ? 'persist()' : feature)

/** A program that creates a client with the features, and uses `more` of its modules. */
export const clientBundle = (features: readonly string[], more: readonly string[] = []): Promise<Bundle> =>
  bundle(
    [
      ...more.map((path, at) => `import * as more${at} from './${path}'; globalThis.more${at} = more${at}`),
      `import { createClient, ${features.join(', ')} } from './index.ts'`,
      `globalThis.client = createClient('https://api.example.com', [${features.map(listed).join(', ')}])`,
    ].join('\n'),
    source,
  )

/** Everything that a module exports. */
export const moduleBundle = (path: string, external: readonly string[] = []): Promise<Bundle> =>
  bundle(`export * from './${path}'`, source, external)

/** The client with every feature, from `plinth-client/all`. */
export const allBundle = (): Promise<Bundle> =>
  bundle(`import { createClient } from './all.ts'; globalThis.client = createClient('https://api.example.com')`, source)
