/**
 * Prepares a fresh clone: installs packages where they are missing or differ from package-lock.json. Runs on plain
 * Node.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const oldestNode = 20

/** The absolute path of a file of this repository. */
export const repositoryPath = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))

const readJson = (path) => JSON.parse(readFileSync(repositoryPath(path), 'utf8'))

/** Versions by place, of what a lock file says or of what npm noted that it installed. */
const versionsIn = (lock) => Object.entries(lock.packages ?? {}).filter(([place]) => place !== '')

/** What npm noted down is compared, not looked up: without a network this costs and needs nothing. */
function isInstalled() {
  if (!existsSync(repositoryPath('node_modules/.package-lock.json'))) return false
  const installed = new Map(
    versionsIn(readJson('node_modules/.package-lock.json')).map(([place, { version }]) => [place, version]),
  )
  return versionsIn(readJson('package-lock.json')).every(
    ([place, { version, optional }]) => installed.get(place) === version || (optional && !installed.has(place)),
  )
}

/** Runs the npm that runs this script, else the one on the path. */
function npm(...args) {
  const own = process.env.npm_execpath
  const options = { cwd: repositoryPath('.'), stdio: 'inherit' }
  const { status } = own?.endsWith('.js')
    ? spawnSync(process.execPath, [own, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
  return status === 0
}

/** Throws an Error that says what to do. */
export function prepare() {
  if (Number(process.versions.node.split('.')[0]) < oldestNode)
    throw new Error(`Node ${oldestNode} or newer is needed; this is ${process.versions.node}.`)
  if (isInstalled()) return
  console.log('Installing packages…')
  if (!npm('ci') && !npm('install')) throw new Error('npm could not install the packages; see above.')
}
