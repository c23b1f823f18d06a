/**
 * Builds the dashboard into the folder that the server serves, `packages/server/dashboard/`: `index.html`, and under
 * `assets/` files whose names contain a hash of their content, each with its brotli and gzip form beside it. All styles
 * are one file; scripts are one chunk per area. Owns nothing of how they are served.
 *
 *     node scripts/run.mjs scripts/build/dashboard.ts [--force]      builds if a source is newer than the last build
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { colors, tokensCss } from '../../packages/server/src/http/pages/design-tokens.ts'
import { iconSvg } from '../../packages/server/src/http/pages/logo.ts'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '')
const source = join(root, 'packages/dashboard/src')

/** Where the server looks for the dashboard. */
export const dashboardFolder = join(root, 'packages/server/dashboard')

/** What a build is made of: its own sources, the client's, the readers of files, the libraries, and this file. */
const inputs = [
  source,
  join(root, 'packages/client/src'),
  join(root, 'packages/server/src/base/text'),
  join(root, 'packages/server/src/query/record-files'),
  join(root, 'packages/server/src/query/cells.ts'),
  join(root, 'packages/server/src/limits/writes.ts'),
  join(root, 'packages/server/src/http/pages/design-tokens.ts'),
  join(root, 'packages/server/src/http/pages/logo.ts'),
  join(root, 'package-lock.json'),
  fileURLToPath(import.meta.url),
]

/** Where the server puts the nonce of the page's styles. */
const noncePlaceholder = '__CSP_NONCE__'

const filesIn = (path: string): string[] =>
  statSync(path).isFile()
    ? [path]
    : readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))

/** A hash of the names, sizes and times of all inputs, without reading them. */
function fingerprint(): string {
  const hash = createHash('sha256')
  for (const path of inputs.flatMap(filesIn).sort()) {
    const { size, mtimeMs } = statSync(path)
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

/** Of the inputs of the last build. */
const stampPath = join(root, '.cache/dashboard-build')

const isCurrent = (stamp: string): boolean =>
  existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp && existsSync(join(dashboardFolder, 'index.html'))

/** Builds the dashboard unless the last build has the same inputs. Returns whether it did. Throws with the messages. */
export async function buildDashboard({ isForced = false } = {}): Promise<boolean> {
  const stamp = fingerprint()
  if (!isForced && isCurrent(stamp)) return false
  const files = new Map<string, Uint8Array>([...(await bundleScripts()), ...bundleStyles(), ...readIcon()])
  // A server that runs meanwhile sees the old build or the new one.
  const fresh = `${dashboardFolder}.${process.pid}`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(join(fresh, 'assets'), { recursive: true })
  for (const [name, bytes] of files) writeCompressed(join(fresh, 'assets', name), bytes)
  writeFileSync(join(fresh, 'index.html'), pageOf([...files.keys()]))
  rmSync(dashboardFolder, { recursive: true, force: true })
  renameSync(fresh, dashboardFolder)
  mkdirSync(dirname(stampPath), { recursive: true })
  writeFileSync(stampPath, stamp)
  return true
}

const entries = ['main', 'theme-start'] as const

async function bundleScripts(): Promise<[string, Uint8Array][]> {
  const { success, logs, outputs } = await Bun.build({
    entrypoints: entries.map((name) => join(source, name === 'main' ? 'main.tsx' : `app/${name}.ts`)),
    target: 'browser',
    format: 'esm',
    splitting: true,
    minify: true,
    naming: { entry: '[name]-[hash].[ext]', chunk: 'chunk-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    define: { 'process.env.NODE_ENV': '"production"' },
    throw: false,
  })
  if (!success) throw new Error(`The dashboard does not build:\n${logs.join('\n')}`)
  return Promise.all(
    outputs.map(
      async (output): Promise<[string, Uint8Array]> => [
        basename(output.path),
        new Uint8Array(await output.arrayBuffer()),
      ],
    ),
  )
}

/** All styles below a folder with the tokens, in the order of the layers that `base.css` declares. */
export function readStyles(folder: string): string {
  const order = (path: string): string => (path.endsWith('/base.css') ? '' : path)
  const texts = filesIn(folder)
    .filter((path) => path.endsWith('.css'))
    .sort((one, other) => (order(one) < order(other) ? -1 : 1))
    .map((path) => readFileSync(path, 'utf8'))
  return [...texts, `@layer tokens {\n${tokensCss}}`].join('\n')
}

/** One file. */
function bundleStyles(): [string, Uint8Array][] {
  const bytes = Buffer.from(withoutComments(readStyles(source)))
  return [[`styles-${hashOf(bytes)}.css`, bytes]]
}

/** Part of the name of a file, so that it can be cached for ever. */
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex').slice(0, 10)

/** The icon of the browser's tab. */
function readIcon(): [string, Uint8Array][] {
  const bytes = Buffer.from(iconSvg(colors.accent[0], colors['accent-text'][1]))
  return [[`icon-${hashOf(bytes)}.svg`, bytes]]
}

/** Compression removes the rest of what a minifier would. */
const withoutComments = (css: string): string =>
  css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\n\s*/g, '\n')
    .replace(/\n+/g, '\n')
    .trim()

function writeCompressed(path: string, bytes: Uint8Array): void {
  writeFileSync(path, bytes)
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
}

/** The only page. Everything that it loads is one of `names`. */
function pageOf(names: readonly string[]): string {
  const find = (start: string, end: string): string => {
    const name = names.find((one) => one.startsWith(start) && one.endsWith(end))
    if (name === undefined) throw new Error(`The build has no ${start}…${end}`)
    return `/dashboard/assets/${name}`
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="csp-nonce" content="${noncePlaceholder}">
<title>Plinth</title>
<link rel="icon" href="${find('icon-', '.svg')}">
<script type="module" blocking="render" src="${find('theme-start-', '.js')}"></script>
<link rel="stylesheet" href="${find('styles-', '.css')}">
<script type="module" src="${find('main-', '.js')}"></script>
</head>
<body>
<div id="root"></div>
<noscript>The dashboard needs JavaScript.</noscript>
</body>
</html>
`
}

if (import.meta.main) {
  const isNew = await buildDashboard({ isForced: process.argv.includes('--force') })
  console.log(isNew ? 'Built the dashboard.' : 'The dashboard is up to date.')
}
