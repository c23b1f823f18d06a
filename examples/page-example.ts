/**
 * Runs an example with a page: serves the `plinth.config.ts` of its folder in development mode and, on a second port,
 * the page: static files, and its scripts bundled in memory. Each example provides its welcome text and its shell
 * variables.
 */
import { chmodSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { openApp } from '../packages/server/src/app.ts'
import { systemClock } from '../packages/server/src/base/clock.ts'
import { createLog } from '../packages/server/src/base/log.ts'
import { describeFailure } from '../packages/server/src/cli/failure.ts'
import { waitForShutdown } from '../packages/server/src/cli/shutdown.ts'
import type { Settings } from '../packages/server/src/config/config.ts'
import { load } from '../packages/server/src/config/load.ts'

export interface PageExample {
  /** The example's folder, with `plinth.config.ts` and `page/`. */
  readonly folder: string
  /** Default ports, overridden by `--port` and `--page-port`. */
  readonly ports: readonly [api: number, page: number]
  /** The files of `page/` that are served; `index.html` is also `/`. A script `map.ts` is served as `/map.js`. */
  readonly files: readonly string[]
  /** Called before the configuration is loaded, to create files that it reads. */
  prepare?(dataFolder: string): void
  /** Called once the API is served; returns additional routes for the page's port. */
  openRoutes?(api: Api): Promise<Routes>
  /** Called once both are served, to insert example data and to return the welcome text. */
  introduce(served: Served): Introduction | Promise<Introduction>
}

export interface Api {
  /** Public URL of the API, without a trailing slash. */
  readonly apiUrl: string
  readonly settings: Settings
}

export interface Served extends Api {
  readonly pageUrl: string
}

/** GET handlers by path. */
export type Routes = Readonly<Record<string, (request: Request) => Response | Promise<Response>>>

export interface Introduction {
  /** Shell variables for README.md, written to `demo.env` in the data folder. */
  readonly environment: Readonly<Record<string, string>>
  /** The text printed after the start; `demoPath` is the file with the shell variables. */
  welcome(demoPath: string): string
}

/**
 * Runs the example until Ctrl-C, then exits the process. Options: `--port`, `--page-port`, `--data` (by default `data`
 * in the example's folder) and `--log-level`.
 */
export const runPageExample = (example: PageExample): Promise<never> => exitWith(serve(example))

async function serve(example: PageExample): Promise<number> {
  const { 'page-port': pagePort, ...options } = parseOptions(example)
  example.prepare?.(options.data)
  const { config, settings } = await load(
    { ...options, config: join(example.folder, 'plinth.config.ts') },
    'development',
  )
  const log = createLog({ level: settings.logLevel, format: 'pretty', colors: process.stdout.isTTY === true })
  const app = await openApp({ config, settings, log })
  const apiUrl = settings.publicUrl ?? app.url
  const routes = (await example.openRoutes?.({ apiUrl, settings })) ?? {}
  const scripts = await bundleScripts(example, apiUrl)
  const page = servePage(example, Number(pagePort), { ...scripts, ...routes })
  const stopped = waitForShutdown({
    process,
    clock: systemClock,
    async close() {
      await page.stop(true)
      await app.close()
    },
    onFailure: (error) => console.error(describeFailure(error)),
  })
  const { environment, welcome } = await example.introduce({ apiUrl, pageUrl: page.url.origin, settings })
  const demoPath = join(settings.dataFolder, 'demo.env')
  writeEnvironment(demoPath, environment)
  console.log(`\n${welcome(shortPath(demoPath))} Ctrl-C stops the server.\n`)
  return stopped
}

function parseOptions({ folder, ports }: PageExample) {
  const [port, pagePort] = ports
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: String(port) },
      'page-port': { type: 'string', default: String(pagePort) },
      data: { type: 'string', default: join(folder, 'data') },
      'log-level': { type: 'string', default: 'warn' },
    },
  })
  return values
}

/** Any static file server would do. */
function servePage({ folder, files }: PageExample, port: number, routes: Routes) {
  const serveFile = (path: string) => () => new Response(Bun.file(path))
  const staticFiles = files.filter((name) => !name.endsWith('.ts'))
  return Bun.serve({
    hostname: '127.0.0.1',
    port,
    routes: {
      ...Object.fromEntries(staticFiles.map((name) => [`/${name}`, serveFile(join(folder, 'page', name))])),
      '/': serveFile(join(folder, 'page/index.html')),
      '/page-example.css': serveFile(join(import.meta.dirname, 'page-example.css')),
      ...Object.fromEntries(Object.entries(routes).map(([path, handle]) => [path, { GET: handle }])),
    },
    fetch: () => new Response('Not found', { status: 404 }),
  })
}

/** Bundles the scripts of the page with the client, as any bundler would. `process.env.PLINTH_URL` is the API's URL. */
async function bundleScripts({ folder, files }: PageExample, apiUrl: string): Promise<Routes> {
  const scripts = files.filter((name) => name.endsWith('.ts'))
  const { outputs } = await Bun.build({
    entrypoints: scripts.map((name) => join(folder, 'page', name)),
    target: 'browser',
    minify: { syntax: true, whitespace: true },
    sourcemap: 'inline',
    define: { 'process.env.PLINTH_URL': JSON.stringify(apiUrl) },
  })
  const serve = async (output: Bun.BuildArtifact) => {
    const text = await output.text()
    return () => new Response(text, { headers: { 'Content-Type': 'text/javascript; charset=utf-8' } })
  }
  const routes = outputs.map(async (output) => [`/${basename(output.path)}`, await serve(output)] as const)
  return Object.fromEntries(await Promise.all(routes))
}

/** Readable by its owner only, because it may contain keys. */
function writeEnvironment(path: string, lines: Introduction['environment']): void {
  const text = Object.entries(lines).map(([name, value]) => `export ${name}='${value}'\n`)
  writeFileSync(path, ['# Rewritten at every start of the example.\n', ...text].join(''), { mode: 0o600 })
  chmodSync(path, 0o600)
}

/** Returns a path relative to the working directory if it is below it, else the absolute path. */
export function shortPath(path: string): string {
  const short = relative('.', path)
  return short.startsWith('..') ? path : short
}

/** Exits with the code that `running` resolves with, or prints the failure and exits with 1. */
export async function exitWith(running: Promise<number>): Promise<never> {
  try {
    process.exit(await running)
  } catch (error) {
    console.error(describeFailure(error))
    process.exit(1)
  }
}
