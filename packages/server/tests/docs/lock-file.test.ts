/** The lock file: `npm ci` refuses one that lacks a dependency, also an optional one for another platform. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const path = join(import.meta.dir, '../../../../package-lock.json')
const { packages } = JSON.parse(readFileSync(path, 'utf8')) as { packages: Readonly<Record<string, LockedPackage>> }

test('the lock file contains every dependency that one of its packages names', () => {
  const locked = new Set(Object.keys(packages).map((folder) => folder.split('node_modules/').at(-1)))
  const missing = Object.entries(packages).flatMap(([folder, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !locked.has(name))
      .map((name) => `${folder}: ${name}`),
  )
  expect(missing).toEqual([])
})
