/**
 * Restores a data folder from a backup: written beside its target, verified against every checksum, and only then
 * renamed. A restore that fails or is killed has changed nothing at the target.
 */
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkFolderFree, lockFileName, lockFolder } from '../disk/folder-lock.ts'
import { BackupError, readArchive, requireArchive } from './archive.ts'
import { syncFolder } from './backup.ts'

export interface RestorePlan {
  readonly archive: string
  /** Must not exist, or be empty. */
  readonly folder: string
  /** Called with the text of `backup.json` before anything is written; a throw rejects the archive. */
  readonly onHead: (text: string) => void
  /** Further files of the data folder, by name; called once everything else is written and verified. */
  readonly moreFiles: () => ReadonlyMap<string, string>
}

export interface RestoreReport {
  readonly files: number
  readonly bytes: number
}

/** Throws `BackupError` and system errors, with nothing left behind. */
export async function restore({ archive, folder, onHead, moreFiles }: RestorePlan): Promise<RestoreReport> {
  await requireArchive(archive)
  await checkEmpty(folder)
  await checkMovable(folder)
  const work = `${folder}.restoring`
  await mkdir(work, { recursive: true, mode: 0o700 })
  const lock = lockFolder(work, (reason) => new BackupError(`A restore to ${folder} is under way`, { cause: reason }))
  try {
    const data = join(work, 'data')
    // Left by a killed restore.
    await rm(data, { recursive: true, force: true })
    await mkdir(data, { mode: 0o700 })
    const report = await fill(data, { archive, onHead })
    for (const [name, text] of moreFiles())
      await writeFile(join(data, name), text, { mode: 0o600, flag: 'wx', flush: true })
    await checkEmpty(folder)
    // A rename replaces an empty folder only.
    await rename(data, folder)
    await syncFolder(dirname(folder))
    return report
  } finally {
    await rm(work, { recursive: true, force: true })
    lock.close()
  }
}

async function fill(
  data: string,
  { archive, onHead }: Pick<RestorePlan, 'archive' | 'onHead'>,
): Promise<RestoreReport> {
  const folders = new Set<string>([data])
  const report = await readArchive(archive, {
    onHead,
    async pathFor(path) {
      checkIsData(path)
      const target = join(data, path)
      const parent = dirname(target)
      if (!folders.has(parent)) {
        await mkdir(parent, { recursive: true, mode: 0o700 })
        folders.add(parent)
      }
      return target
    },
  })
  for (const one of folders) await syncFolder(one)
  return report
}

/**
 * Throws for a path that no backup contains: of the top-level files only databases are data. The others are secrets and
 * keys, which are sealed in the manifest or omitted, and hidden ones are internal.
 */
function checkIsData(path: string): void {
  const names = path.split('/')
  const isSecret = names.length === 1 && (!path.endsWith('.sqlite') || path === lockFileName)
  if (isSecret || names.some((name) => name.startsWith('.')))
    throw new BackupError(`The archive holds "${path}", which no backup of Plinth contains`)
}

/** Throws for a folder that a rename cannot replace, such as a container volume. */
async function checkMovable(folder: string): Promise<void> {
  if ((await lstat(folder).catch(() => null))?.isSymbolicLink())
    throw new BackupError(`${folder} is a link. Restore to the folder it points to`)
  if (!existsSync(folder)) return
  const [own, parent] = [await stat(folder), await stat(dirname(folder))]
  if (own.dev !== parent.dev)
    throw new BackupError(
      `${folder} is a file system of its own. Restore to a folder inside it, such as ${folder}/data`,
    )
}

/** Throws for a folder that is served or not empty. */
async function checkEmpty(folder: string): Promise<void> {
  const names = existsSync(folder) ? await readdir(folder) : []
  checkFolderFree(folder)
  if (names.length > 0)
    throw new BackupError(`${folder} is not empty. Restore to another folder, or move this one away.`)
}
