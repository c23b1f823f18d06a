/** Builds TrailBase, a peer of the benchmarks, from its crates. It has no program in a registry of packages. */
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder, installDebian, provideProgram } from './programs.ts'

/** Of the crates; `bench/peers/trailbase/Cargo.lock` pins all others. */
const version = '0.2.0'

const source = fileURLToPath(new URL('../../bench/peers/trailbase', import.meta.url))

/** Pages of which the server's code has templates. They are not measured. */
const pages = [
  'login',
  'register',
  'reset_password/request',
  'reset_password/update',
  'change_password',
  'change_email',
]

function runCargo(cargo: string, args: readonly string[], folder: string): boolean {
  const { exitCode, stderr } = Bun.spawnSync([cargo, ...args], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  if (exitCode !== 0) console.error(stderr.toString().slice(-2000))
  return exitCode === 0
}

/** Copies the crate with the web pages, empties them, and leaves out their build. */
function copyAssets(cargo: string, folder: string): boolean {
  const only = join(folder, 'only-assets')
  mkdirSync(join(only, 'src'), { recursive: true })
  writeFileSync(join(only, 'src/lib.rs'), '')
  writeFileSync(
    join(only, 'Cargo.toml'),
    `[package]\nname = "only-assets"\nversion = "0.0.0"\n[dependencies]\ntrailbase-assets = "=${version}"\n`,
  )
  if (!runCargo(cargo, ['fetch'], only)) return false
  const home = process.env.CARGO_HOME ?? join(homedir(), '.cargo')
  const [found] = globSync(join(home, `registry/src/*/trailbase-assets-${version}`))
  if (found === undefined) return false
  const assets = join(folder, 'assets')
  cpSync(found, assets, { recursive: true, filter: (path) => path !== join(found, 'js') })
  for (const page of pages) {
    const path = join(assets, 'js/auth/dist', page, 'index.html')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '<!doctype html>\n')
  }
  mkdirSync(join(assets, 'js/admin/dist'), { recursive: true })
  writeFileSync(join(assets, 'build.rs'), 'fn main() {}\n')
  return true
}

function build(cargo: string, folder: string): string | null {
  cpSync(source, folder, { recursive: true })
  if (!copyAssets(cargo, folder) || !runCargo(cargo, ['build', '--release', '--locked'], folder)) return null
  return join(folder, 'target/release/trailbase-server')
}

/**
 * The path of TrailBase's program. Where it is missing it is built, once for all checkouts of this user, which takes
 * some ten minutes on two cores; null where there is no Rust.
 */
export function provideTrailBase(): string | null {
  const path = join(cacheFolder(), `trailbase-${version}`)
  if (existsSync(path)) return path
  const cargo = Bun.which('cargo')
  if (cargo === null || provideProgram(['protoc'], 'protobuf-compiler') === null) return null
  installDebian('libclang-dev')
  mkdirSync(dirname(path), { recursive: true })
  const folder = mkdtempSync(`${path}-`)
  try {
    console.log(`Building trailbase ${version}…`)
    const built = build(cargo, folder)
    if (built === null) return null
    renameSync(built, path)
    return path
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
