/**
 * Verifies a backup by restoring it: into a temporary folder beside the archive, which is examined like a data folder
 * and removed. The result is stored beside the archive.
 */
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from '../../base/schemas/z.ts'
import { verificationBytesMax, verificationProblemsMax } from '../../limits/jobs.ts'
import { lockFolder } from '../disk/folder-lock.ts'
import { BackupError, requireArchive } from './archive.ts'
import { examine } from './doctor.ts'
import { restore } from './restore.ts'

const shape = z.object({
  /** Milliseconds since 1970. */
  verifiedAtMs: z.int(),
  files: z.int(),
  bytes: z.int(),
  /** The first of them; none if the backup is intact. */
  problems: z.array(z.string()),
})

export type Verification = Readonly<z.output<typeof shape>>

export interface VerificationPlan {
  readonly archive: string
  /** Called with the text of `backup.json`; a throw rejects the archive. */
  readonly onHead: (text: string) => void
  /** Whether files are in an S3 bucket, which the archive does not contain. */
  readonly hasStore: boolean
  readonly nowMs: number
}

const resultOf = (archive: string): string => `${archive}.verified`

/** Needs the space of the data folder beside the archive. Throws system errors, such as a full disk. */
export async function verify({ archive, onHead, hasStore, nowMs }: VerificationPlan): Promise<Verification> {
  const work = `${archive}.verifying`
  await requireArchive(archive)
  await mkdir(work, { recursive: true, mode: 0o700 })
  const lock = lockFolder(
    work,
    (reason) => new BackupError(`A verification of ${archive} is running`, { cause: reason }),
  )
  try {
    const folder = join(work, 'data')
    // Left by a killed verification.
    await rm(folder, { recursive: true, force: true })
    const found = await restoreAndExamine({ archive, folder, onHead, hasStore })
    const verification = { verifiedAtMs: nowMs, ...found, problems: found.problems.slice(0, verificationProblemsMax) }
    await writeFile(join(work, 'result'), JSON.stringify(verification), { mode: 0o600, flush: true })
    await rename(join(work, 'result'), resultOf(archive))
    return verification
  } finally {
    await rm(work, { recursive: true, force: true })
    lock.close()
  }
}

async function restoreAndExamine({
  folder,
  hasStore,
  ...plan
}: Omit<VerificationPlan, 'nowMs'> & { readonly folder: string }): Promise<Omit<Verification, 'verifiedAtMs'>> {
  try {
    const { files, bytes } = await restore({ ...plan, folder, moreFiles: () => new Map() })
    return { files, bytes, problems: [...examine({ folder, hasStore }).problems] }
  } catch (error) {
    if (error instanceof BackupError) return { files: 0, bytes: 0, problems: [error.message] }
    throw error
  }
}

/** The latest result; null if the archive was not verified, or was written since. */
export async function findVerification(archive: string): Promise<Verification | null> {
  try {
    const [own, result] = await Promise.all([stat(archive), stat(resultOf(archive))])
    if (result.size > verificationBytesMax || result.mtimeMs < own.mtimeMs) return null
    return shape.safeParse(JSON.parse(await readFile(resultOf(archive), 'utf8'))).data ?? null
  } catch {
    // There is none, or it cannot be read: the archive counts as not verified.
    return null
  }
}
