/**
 * Backups and verifications that the server starts: each is a run of `plinth backup` or `plinth verify` in a process of
 * its own and at a low priority, in one folder that the operator has set. One runs at a time. Also lists the backups in
 * that folder.
 */
import { mkdirSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../base/clock.ts'
import { withHandles } from '../../base/files/open-files.ts'
import { backupMessageCharsMax } from '../../limits/jobs.ts'
import { readHead } from './archive.ts'
import { findVerification, type Verification } from './verify.ts'

export interface BackupFile {
  readonly name: string
  readonly bytes: number
  /** The text of `backup.json`; null for a file that is no backup. */
  readonly head: string | null
  /** Null if it was not verified. */
  readonly verification: Verification | null
}

export interface BackupRun {
  readonly kind: 'backup' | 'verification'
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAtMs: number
  readonly endedAtMs: number | null
  /** What the command has reported. */
  readonly message: string | null
}

export interface BackupRuns {
  /** False while one runs. */
  start(): boolean
  /** Verifies a listed backup. False while one runs; null for a name that is not listed. */
  verify(name: string): Promise<boolean | null>
  /** The latest one since the start of the server. */
  readonly latest: BackupRun | null
  /** Bytes written so far by the backup that runs, of this server or another process; null where none does. */
  bytesWritten(): Promise<number | null>
  /** The backups whose names are below `before`, the newest first. */
  list(before: string | null, limit: number): Promise<readonly BackupFile[]>
  /** Kills the run, which leaves nothing under its name. */
  close(): Promise<void>
}

export interface BackupRunsOptions {
  readonly folder: string
  readonly dataFolder: string
  readonly serviceKey: string
  /** The S3 bucket of files, which backups do not contain; null without one. */
  readonly bucket: string | null
  readonly clock: Clock
}

const program = fileURLToPath(new URL('../../main.ts', import.meta.url))
const namePattern = /^plinth-[\w.-]{1,100}\.tar$/
const partialPattern = /^plinth-[\w.-]{1,100}\.tar\.partial$/

export class BackupProcesses implements BackupRuns {
  readonly #options: BackupRunsOptions
  #latest: BackupRun | null = null
  #child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  #ended: Promise<void> = Promise.resolve()

  constructor(options: BackupRunsOptions) {
    this.#options = options
  }

  get latest(): BackupRun | null {
    return this.#latest
  }

  start(): boolean {
    const { folder, dataFolder } = this.#options
    if (this.#child) return false
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#run('backup', ['backup', folder, '--data', dataFolder])
    return true
  }

  async verify(name: string): Promise<boolean | null> {
    const path = join(this.#options.folder, name)
    const found = namePattern.test(name) ? await stat(path).catch(() => null) : null
    if (!found?.isFile()) return null
    if (this.#child) return false
    this.#run('verification', ['verify', path])
    return true
  }

  async bytesWritten(): Promise<number | null> {
    const { folder } = this.#options
    const partial = (await namesIn(folder)).find((name) => partialPattern.test(name))
    if (partial === undefined) return null
    const archive = await stat(join(folder, partial, 'archive')).catch(() => null)
    return archive?.size ?? 0
  }

  async list(before: string | null, limit: number): Promise<readonly BackupFile[]> {
    const { folder } = this.#options
    const names = (await namesIn(folder)).filter((name) => namePattern.test(name) && (before === null || name < before))
    const files: BackupFile[] = []
    // Names contain the time.
    for (const name of names.sort().reverse()) {
      if (files.length >= limit) break
      const path = join(folder, name)
      const found = await stat(path).catch(() => null)
      if (!found?.isFile()) continue
      const [head, verification] = await Promise.all([readHead(path).catch(() => null), findVerification(path)])
      files.push({ name, bytes: found.size, head, verification })
    }
    return files
  }

  async close(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#ended
  }

  #run(kind: BackupRun['kind'], words: readonly string[]): void {
    const { folder, serviceKey, bucket, clock } = this.#options
    const child = withHandles(() =>
      Bun.spawn([process.execPath, program, ...words], {
        cwd: folder,
        // Nothing but what the commands need.
        env: { PLINTH_SERVICE_KEY: serviceKey, ...(bucket === null ? {} : { S3_BUCKET: bucket }) },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    )
    const run = { kind, state: 'running', startedAtMs: clock.now(), endedAtMs: null, message: null } as const
    this.#child = child
    this.#latest = run
    lowerPriority(child.pid)
    this.#ended = this.#follow(child, run)
  }

  async #follow(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>, run: BackupRun): Promise<void> {
    const [code, out, error] = await Promise.all([child.exited, readText(child.stdout), readText(child.stderr)])
    this.#child = null
    this.#latest = {
      ...run,
      state: code === 0 ? 'done' : 'failed',
      endedAtMs: this.#options.clock.now(),
      message: (code === 0 ? out : error).trim().slice(0, backupMessageCharsMax),
    }
  }
}

/** All of the output, of which only the beginning is kept. */
async function readText(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream)
    if (text.length < backupMessageCharsMax) text += decoder.decode(chunk, { stream: true })
  return text
}

/** None of a folder that does not exist: the first backup creates it. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The processors are for requests first. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {
    // The process has ended already, or the system does not permit it.
  }
}
