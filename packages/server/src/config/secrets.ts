/**
 * Secrets that a server generates at the first start, stored in files that only its user can read.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from './issues.ts'

const secretBytes = 32

/**
 * Loads the secret in a file, or generates it atomically: processes that start at the same time get the same secret.
 * Throws `ConfigError` if the file has fewer than `charsMin` characters.
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
    const remedy = 'Restore the right one, or delete the file to generate a new one.'
    throw new ConfigError(`${path}: must contain a secret of at least ${charsMin} characters. ${remedy}`)
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

/** Writes and flushes a temporary file, then links it: the first process wins, and the others read its secret. */
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

/** A rename would replace the secret of a faster process; a link fails instead. */
async function nameOnce(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    // For file systems without links: a copy is not atomic, but replaces nothing.
    await copyFile(temporary, path, constants.COPYFILE_EXCL).catch((failure: unknown) => {
      if (codeOf(failure) !== 'EEXIST') throw failure
    })
  }
}

/** Makes the new name durable. Windows cannot open folders and does not need it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code
