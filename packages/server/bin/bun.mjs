/**
 * The Bun binary, which every launcher needs. Runs on plain Node and imports nothing that must be installed. Owns
 * finding it, repairing it where npm ran without install scripts, and running it as if it were this process.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** @typedef {{ readonly cwd?: string, readonly env?: NodeJS.ProcessEnv }} RunOptions */

const runs = (path) =>
  existsSync(path) && spawnSync(path, ['--version'], { stdio: 'ignore', windowsHide: true }).status === 0

/** The manifest of the package `bun`, wherever npm has put it; null where it is not installed. */
function findManifest() {
  try {
    return createRequire(import.meta.url).resolve('bun/package.json')
  } catch {
    return null
  }
}

/** The binaries that come as packages of their own, one per kind of machine; npm installs those that may fit. */
function platformBinaries(folder) {
  const scope = join(dirname(folder), '@oven')
  if (!existsSync(scope)) return []
  return readdirSync(scope).flatMap((name) => ['bun', 'bun.exe'].map((file) => join(scope, name, 'bin', file)))
}

/** The path of a Bun that runs. Throws an Error that says what to do. */
export function getBun() {
  const manifest = findManifest()
  if (manifest === null) throw new Error('Bun is not installed. Run `npm install`.')
  const folder = dirname(manifest)
  const linked = join(folder, JSON.parse(readFileSync(manifest, 'utf8')).bin.bun)
  if (runs(linked)) return linked
  // Without install scripts the binary was downloaded, but not moved to where the package has it.
  spawnSync(process.execPath, [join(folder, 'install.js')], { cwd: folder, stdio: 'ignore', windowsHide: true })
  const found = [linked, ...platformBinaries(folder)].find(runs)
  if (found === undefined) throw new Error('Bun does not run here. Remove node_modules and run `npm install` again.')
  return found
}

/** npm ends at SIGTERM without a word to the program it runs; an orphaned process notices within this time. */
const orphanCheckMs = 500

/** Calls `onOrphaned` once when the npm that started this process has ended. Without npm it never calls it. */
function watchNpm(onOrphaned) {
  if (process.env.npm_lifecycle_event === undefined) return null
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    onOrphaned()
  }, orphanCheckMs)
  return timer
}

/**
 * Settings of Bun's allocator, which reads them before any code runs. It searches its free memory for pages to return
 * to the system, by default every 100 ms: a server under load needs them again at once, and spent a twentieth of its
 * processor time on the search. Here it searches once a second.
 */
const allocatorSettings = { MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '1000' }

/**
 * Runs Bun in the foreground of this process: same input and outputs, signals passed on. Resolves with its exit code.
 * The IPC channel carries no messages; its end is how a server learns that its launcher was killed.
 *
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<number>}
 */
export function runBun(args, options = {}) {
  const binary = getBun()
  const pass = (signal) => void child.kill(signal)
  const signals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP']
  // Before there is a child: Node delivers a signal when this code has ended, so that none falls between the two.
  for (const signal of signals) process.on(signal, pass)
  const env = { ...allocatorSettings, ...(options.env ?? process.env) }
  const child = spawn(binary, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], ...options, env })
  const timer = watchNpm(() => pass('SIGTERM'))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      for (const name of signals) process.off(name, pass)
      clearInterval(timer)
      resolve(code ?? (signal === 'SIGINT' ? 130 : 143))
    })
  })
}
