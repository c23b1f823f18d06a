/** Writes a project: copies the files of a template and completes its `package.json`. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Template } from './templates.ts'

/** A project that cannot be created where it should be. */
export class ProjectError extends Error {}

const ownFolder = fileURLToPath(new URL('..', import.meta.url))

/** An empty Git repository is an empty folder. */
const isEmpty = (folder: string): boolean => readdirSync(folder).every((name) => name === '.git')

/** `folder` is absolute and is created if missing. Throws `ProjectError` if it contains files; then nothing changed. */
export function createProject(folder: string, template: Template): void {
  mkdirSync(folder, { recursive: true })
  if (!isEmpty(folder)) throw new ProjectError(`${folder} is not empty. Name a new or an empty folder.`)
  for (const part of ['shared', template.name]) {
    const from = join(ownFolder, 'templates', part)
    if (!existsSync(from)) throw new ProjectError(`The package is incomplete: ${from} is missing.`)
    cpSync(from, folder, { recursive: true })
  }
  // npm does not publish files named .gitignore.
  renameSync(join(folder, '_gitignore'), join(folder, '.gitignore'))
  completeManifest(join(folder, 'package.json'), packageName(basename(folder)))
}

/** Names the project, and requires the packages of Plinth in the version of this one: they are released together. */
function completeManifest(path: string, name: string): void {
  const { version } = JSON.parse(readFileSync(join(ownFolder, 'package.json'), 'utf8')) as { version: string }
  const text = readFileSync(path, 'utf8').replace(/("plinth(?:-client)?": )"latest"/g, `$1"^${version}"`)
  const manifest = { name, ...(JSON.parse(text) as object) }
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`)
}

/** A valid package name that resembles the name of a folder. */
export const packageName = (folder: string): string =>
  folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|[._-]+$/g, '') || 'app'
