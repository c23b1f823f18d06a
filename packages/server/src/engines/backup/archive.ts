/**
 * Format of a backup: a tar archive with a manifest (`backup.json`), the files of a data folder below `data/`, and a
 * checksum of each preceding entry (`SHA256SUMS`, in the format of `sha256sum`). Written and read as a stream, in
 * bounded memory. Does not decide which files are included.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { createTarDecoder, createTarPacker, type ParsedTarEntry } from 'modern-tar'
import { backupChunkBytes, backupHeadBytesMax, backupPathCharsMax } from '../../limits/jobs.ts'

export const headName = 'backup.json'
export const sumsName = 'SHA256SUMS'
export const dataPrefix = 'data/'

/** A backup or restore that is not possible; the message is for the operator. */
export class BackupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BackupError'
  }
}

/** Whether a path is valid in a data folder: relative, of plain segments. */
export const isPlainPath = (path: string): boolean =>
  path.length <= backupPathCharsMax &&
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern excludes them.
  path.split('/').every((part) => part !== '.' && part !== '..' && /^[^\\/\x00-\x1f\x7f]{1,255}$/.test(part))

/** Throws `BackupError` where there is no file. */
export async function requireArchive(path: string): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (!found) throw new BackupError(`There is no archive at ${path}`)
  if (!found.isFile()) throw new BackupError(`${path} is not a file`)
}

const sumLine = (sha256: string, name: string): string => `${sha256}  ${name}\n`

export interface ArchiveWriter {
  /** Adds a file; throws `BackupError` if it shrinks meanwhile. Returns its size in bytes. */
  addFile(name: string, path: string): Promise<number>
  addText(name: string, text: string): Promise<void>
  /** Adds the checksums and makes the archive durable. */
  finish(): Promise<void>
  /** Closes the files. */
  close(): Promise<void>
}

/** Writes to `path`, and collects checksums in `sumsPath`; replaces both. Must be closed. */
export async function openArchiveWriter(path: string, sumsPath: string): Promise<ArchiveWriter> {
  const output = await open(path, 'w', 0o600)
  const sums = await open(sumsPath, 'w', 0o600)
  const { readable, controller } = createTarPacker()
  const writing = writeAll(readable, output)
  // A write error is kept for the caller that adds an entry, who would otherwise see only a closed stream.
  let writeError: { readonly cause: unknown } | null = null
  writing.catch((error: unknown) => {
    writeError = { cause: error }
    controller.error(error)
  })

  async function add(
    name: string,
    size: number,
    body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<void> {
    const hash = createHash('sha256')
    try {
      const entry = controller.add({ name, size, type: 'file', mode: 0o600 }).getWriter()
      for await (const chunk of body) {
        hash.update(chunk)
        await entry.write(chunk)
      }
      await entry.close()
    } catch (error) {
      controller.error(error)
      await writing.catch(() => {})
      throw writeError?.cause ?? error
    }
    await sums.write(sumLine(hash.digest('hex'), name))
  }

  async function addFile(name: string, from: string): Promise<number> {
    const file = await open(from, 'r')
    try {
      const { size } = await file.stat()
      await add(name, size, readExactly(file, size, from))
      return size
    } finally {
      await file.close()
    }
  }

  return {
    addFile,
    async addText(name, text) {
      const bytes = Buffer.from(text)
      await add(name, bytes.length, [bytes])
    },
    async finish() {
      await addFile(sumsName, sumsPath)
      controller.finalize()
      await writing
      await output.sync()
    },
    async close() {
      controller.error(new Error('closed'))
      await writing.catch(() => {})
      await output.close()
      await sums.close()
    },
  }
}

async function writeAll(readable: ReadableStream<Uint8Array>, output: FileHandle): Promise<void> {
  for await (const chunk of readable) await writeFully(output, chunk)
}

/** A write may be partial. */
async function writeFully(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at, chunk.length - at)).bytesWritten
}

/** Bytes appended after the size was read are ignored. */
async function* readExactly(file: FileHandle, size: number, path: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const wanted = Math.min(backupChunkBytes, size - at)
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at)
    if (bytesRead === 0) throw new BackupError(`${path} became shorter while it was read`)
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

export interface ArchiveReading {
  /** Called with the text of `backup.json` before anything else; its errors are rethrown. */
  readonly onHead: (text: string) => void
  /** Path to write a file of the data folder to; called once per file, with a plain path. */
  readonly pathFor: (path: string) => Promise<string>
}

/**
 * Reads an archive and writes its files. When it resolves, every byte has been verified. Throws `BackupError` for an
 * invalid archive. Returns the number of files and bytes.
 */
export async function readArchive(
  path: string,
  { onHead, pathFor }: ArchiveReading,
): Promise<{ files: number; bytes: number }> {
  // Hash of the checksum lines that the archive must end with.
  const lines = createHash('sha256')
  const written = { files: 0, bytes: 0 }
  let state: 'begin' | 'files' | 'end' = 'begin'

  async function readEntry({ header, body }: ParsedTarEntry): Promise<void> {
    const { name, size, type } = header
    if (type !== 'file') throw new BackupError(`The archive holds "${name}", which is not a file but a ${type}`)
    if (state === 'end') throw new BackupError('The archive continues after its checksums')
    if (state === 'begin') {
      if (name !== headName || size > backupHeadBytesMax) throw new BackupError('This is not a backup of Plinth')
      const bytes = await readFully(body)
      lines.update(sumLine(sha256Of(bytes), name))
      onHead(bytes.toString())
      state = 'files'
      return
    }
    if (name === sumsName) {
      state = 'end'
      const given = createHash('sha256')
      for await (const chunk of body) given.update(chunk)
      if (!given.digest().equals(lines.digest()))
        throw new BackupError('The archive is damaged: a checksum does not match')
      return
    }
    const inside = name.slice(dataPrefix.length)
    if (!name.startsWith(dataPrefix) || !isPlainPath(inside))
      throw new BackupError(`The archive holds "${name}", which is not a path of a data folder`)
    lines.update(sumLine(await writeFile(await pathFor(inside), body), name))
    written.files++
    written.bytes += size
  }

  try {
    for await (const entry of entriesOf(path)) await readEntry(entry)
  } catch (error) {
    // A `BackupError`, or a system error such as a full disk; anything else is the decoder's.
    if (error instanceof BackupError || (error instanceof Error && 'syscall' in error)) throw error
    throw new BackupError('The archive is damaged, or is not a backup of Plinth', { cause: error })
  }
  // TypeScript does not see the assignment in `readEntry`.
  if ((state as string) !== 'end') throw new BackupError('The archive is incomplete: its checksums are missing')
  return written
}

/** The text of `backup.json`. Throws `BackupError` for what is no backup, and system errors. Reads nothing else. */
export async function readHead(path: string): Promise<string> {
  try {
    for await (const { header, body } of entriesOf(path)) {
      if (header.name !== headName || header.size > backupHeadBytesMax) break
      return (await readFully(body)).toString()
    }
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw error
  }
  throw new BackupError('This is not a backup of Plinth')
}

/** Entries of an archive; a damaged one may fail in any entry. */
async function* entriesOf(path: string): AsyncGenerator<ParsedTarEntry> {
  const source = createReadStream(path, { highWaterMark: backupChunkBytes })
  const decoder = createTarDecoder({ strict: true })
  let failure: unknown
  const feeding = feed(source, decoder.writable).catch((error: unknown) => {
    failure = error
  })
  try {
    yield* decoder.readable as unknown as AsyncIterable<ParsedTarEntry>
    await feeding
    if (failure !== undefined) throw failure
  } finally {
    source.destroy()
  }
}

async function feed(source: AsyncIterable<Uint8Array>, sink: WritableStream<Uint8Array>): Promise<void> {
  const writer = sink.getWriter()
  try {
    for await (const chunk of source) await writer.write(chunk)
    await writer.close()
  } catch (error) {
    // The reader would wait for the rest.
    await writer.abort(error).catch(() => {})
    throw error
  }
}

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

async function readFully(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Creates a file and resolves once it is durable. Returns its checksum. */
async function writeFile(path: string, body: ReadableStream<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? new BackupError('The archive holds a file twice') : error
  })
  try {
    for await (const chunk of body) {
      hash.update(chunk)
      await writeFully(file, chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}
