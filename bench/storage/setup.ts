/**
 * What a run about files needs: a server with a few files in it, nginx on the very same files, copies as the baseline
 * of uploads, and a load generator.
 */
import { mkdirSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fillerBytes, type LoadRequest } from '../load/load-requests.ts'
import { type Nginx, startNginx } from '../setup/nginx.ts'
import {
  type BaselineProcess,
  type LoadProcess,
  type ServerProcess,
  serviceKey,
  startLoad,
  startServer,
  startStorageBaseline,
} from '../setup/processes.ts'
import { upload } from './requests.ts'

/** The unit of the server's limits. */
export const megabyte = 1024 * 1024
/** Files in the small bucket, and in each folder of the other. */
export const filesPerFolder = 100
export const smallFileBytes = 1024

export interface StorageSetup {
  readonly server: ServerProcess
  /** Null where nginx is missing and cannot be installed. */
  readonly nginx: Nginx | null
  readonly copies: BaselineProcess
  readonly load: LoadProcess
  readonly one: SharedFile
  readonly hundred: SharedFile
}

/** A file on disk that server and nginx both send. */
export interface SharedFile {
  readonly bytes: number
  /** URL path at the server, and at nginx. */
  readonly path: string
  readonly nginxPath: string
}

/** Free space that a run requires, with a margin. */
const diskBytesMin = { full: 12e9, quick: 3e9 }

/** `stack` closes what is opened. Throws when the disk has too little free space. */
export async function openStorageSetup(
  stack: AsyncDisposableStack,
  work: string,
  quick: boolean,
): Promise<StorageSetup> {
  const { bavail, bsize } = statfsSync(work)
  const needed = diskBytesMin[quick ? 'quick' : 'full']
  if (bavail * bsize < needed) throw new Error(`Too little free space in ${work}: ${needed / 1e9} GB are required`)
  const folder = join(work, 'server')
  const server = await startServer(folder)
  stack.defer(() => server.stop())
  const load = startLoad()
  stack.defer(() => load.stop())
  const blobs = join(folder, 'blobs')
  const files = [1, 100].map((size) => ({ key: `shared-${size}mb`, bytes: size * megabyte }))
  const small = Array.from({ length: filesPerFolder }, (_, at) => upload('few', keyAt(at), smallFileBytes))
  await send(server, load, [...files.map(({ key, bytes }) => upload('files', key, bytes)), ...small])
  const [one, hundred] = files.map(({ key, bytes }) => ({
    bytes,
    path: `/api/storage/files/${key}`,
    nginxPath: `/${findOfSize(blobs, bytes)}`,
  })) as [SharedFile, SharedFile]
  const nginx = await startNginx(blobs)
  if (nginx) stack.defer(() => nginx.stop())
  else
    console.error('\n*** nginx is missing and could not be installed: downloads are measured without a baseline. ***\n')
  for (const file of [one, hundred]) await checkSame(server, nginx, file)
  const copiesFolder = join(work, 'copies')
  mkdirSync(copiesFolder)
  const copies = await startStorageBaseline(copiesFolder)
  stack.defer(() => copies.stop())
  return { server, nginx, copies, load, one, hundred }
}

/** The key of a small file, the same in both buckets. */
export const keyAt = (number: number): string =>
  `${folderAt(Math.floor(number / filesPerFolder))}${String(number % filesPerFolder).padStart(3, '0')}`

/** The prefix of a folder of small files. */
export const folderAt = (number: number): string => `small/${String(number).padStart(4, '0')}/`

async function send(server: ServerProcess, load: LoadProcess, requests: readonly LoadRequest[]): Promise<void> {
  const job = { ports: [server.port], connections: 4, requests, total: requests.length, watched: [] }
  await load.run({ ...job, warmupSeconds: 0, seconds: 0 })
}

/** Finds the only file of a size below a folder. */
function findOfSize(folder: string, bytes: number): string {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const found = paths.filter((path) => {
    const file = statSync(join(folder, path))
    return file.isFile() && file.size === bytes
  })
  if (found.length !== 1) throw new Error(`${found.length} files of ${bytes} bytes in ${folder}`)
  return found[0] as string
}

const sha256Of = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** Throws unless both send the uploaded bytes; the load generator checks only lengths. */
async function checkSame(server: ServerProcess, nginx: Nginx | null, file: SharedFile): Promise<void> {
  const expected = sha256Of(fillerBytes(file.bytes))
  const urls = [`${server.url}${file.path}`, ...(nginx ? [`http://127.0.0.1:${nginx.port}${file.nginxPath}`] : [])]
  for (const url of urls) {
    const response = await fetch(url)
    if (response.status !== 200 || sha256Of(await response.bytes()) !== expected)
      throw new Error(`${url} differs from the uploaded file`)
  }
}

/** Throws unless exactly these keys exist below the prefix, with `fillerBytes` of this length. */
export async function checkStored(
  { server }: StorageSetup,
  prefix: string,
  keys: ReadonlySet<string>,
  bytes: number,
): Promise<void> {
  const headers = { 'X-Platform-Service-Key': serviceKey }
  // The server's entity tag of the content.
  const etag = sha256Of(fillerBytes(bytes)).slice(0, 32)
  const found = new Set<string>()
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ prefix, limit: '1000', ...(cursor && { cursor }) })
    const response = await fetch(`${server.url}/api/storage/files?${query}`, { headers })
    const page = (await response.json()) as { objects: { key: string; etag: string }[]; cursor: string | null }
    for (const object of page.objects) {
      if (object.etag !== etag) throw new Error(`${object.key} differs from the uploaded file`)
      found.add(object.key)
    }
    cursor = page.cursor
  }
  const missing = keys.difference(found).size
  const unexpected = found.difference(keys).size
  if (missing + unexpected > 0) throw new Error(`${prefix}: ${missing} files are missing, ${unexpected} are unexpected`)
}
