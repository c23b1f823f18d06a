/**
 * Secrets that a server makes up for itself on first start and finds again later, in files that only its user can read.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from './issues.ts'

const secretBytes = 32

/**
 * The secret kept in a file, made up first where the file is missing; never half a secret, and the same one for all
 * processes that start at once. Throws `ConfigError` for a file with less than `charsMin` characters in it.
 */
export async function loadOrCreateSecret(path: string, charsMin: number): Promise<string> {
  let text = await findText(path)
  if (text === null) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeOnce(path, `${randomBytes(secretBytes).toString('base64url')}\n`)
    text = await readFile(path, 'utf8')
  }
  const secret = text.trim()
  if (secret.length < charsMin) {
    const remedy = 'Put the right one back, or delete the file to get a new one.'
    throw new ConfigError(`${path}: holds no secret of ${charsMin} or more characters. ${remedy}`)
  }
  return secret
}

async function findText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Complete and on disk before it gets its name; whoever names first wins, and the others read what they find. */
async function writeOnce(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await nameOnce(temporary, path)
  } finally {
    await unlink(temporary)
  }
  await syncFolder(dirname(path))
}

/** A rename would replace the secret of a process that was faster; a link does not. */
async function nameOnce(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    // File systems without links; a copy is not complete at once, but at least it replaces nothing.
    await copyFile(temporary, path, constants.COPYFILE_EXCL).catch((failure: unknown) => {
      if (codeOf(failure) !== 'EEXIST') throw failure
    })
  }
}

/** So that the name survives a crash as well. Windows cannot open folders and needs no such help. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code
