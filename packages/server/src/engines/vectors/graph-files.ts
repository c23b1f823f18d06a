/**
 * Persists a graph across restarts: a file written by the library, and a list beside it with the vector each node was
 * made from. The list is written last and replaced atomically (rename), so a crash leaves the previous pair or none.
 * Everything is verified before use; a missing file, a damaged file and a file of another index are treated alike.
 */
import { mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { CreateNearestNodes, NearestNodes } from './graph.ts'
import type { Measured } from './graph-measure.ts'
import type { VectorMetric } from './vectors.ts'

export interface GraphLocation {
  readonly folder: string
  /** Name of the index. */
  readonly name: string
  readonly metric: VectorMetric
  /** Floats per row. */
  readonly floats: number
}

/** The vector a node was made from; key 0 for a dead node. */
export interface NodeOrigin {
  readonly key: number
  readonly hash: number
}

export interface SavedGraph {
  readonly nearest: NearestNodes
  readonly origins: readonly NodeOrigin[]
  /** Null for a graph still being built. */
  readonly measured: Measured | null
}

interface ListHead {
  readonly format: typeof format
  readonly metric: VectorMetric
  readonly floats: number
  readonly graphFile: string
  readonly graphHash: string
  readonly measured: Measured | null
}

/** Version of the format; incremented when older files must not be read. */
const format = 1

/** Hash of a row's values: identifies a node's vector, so that a copy restored to an older state is safe. */
export const hashOfRow = (values: Float32Array): number => Bun.hash.crc32(values)

const listPath = ({ folder, name }: GraphLocation): string => join(folder, `${name}.nodes`)

/** Saves the current graph; the library's part blocks the thread. */
export async function saveGraph(location: GraphLocation, graph: SavedGraph): Promise<void> {
  await mkdir(location.folder, { recursive: true })
  const graphFile = `${location.name}.${crypto.randomUUID()}.graph`
  const graphPath = join(location.folder, graphFile)
  graph.nearest.save(graphPath)
  const keys = Float64Array.from(graph.origins, ({ key }) => key)
  const hashes = Uint32Array.from(graph.origins, ({ hash }) => hash)
  const graphHash = await syncAndHash(graphPath)
  const { metric, floats } = location
  const head: ListHead = { format, metric, floats, graphFile, graphHash, measured: graph.measured }
  const headBytes = Buffer.from(`${JSON.stringify(head)}\n`)
  const content = Buffer.concat([headBytes, Buffer.from(keys.buffer), Buffer.from(hashes.buffer)])
  const temporary = join(location.folder, `${location.name}.${crypto.randomUUID()}.tmp`)
  const file = await open(temporary, 'wx')
  try {
    await file.write(Buffer.concat([Buffer.from(`${hashOf(content)}\n`), content]))
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, listPath(location))
  await sweep(location, graphFile)
}

/** The graph saved last, or null; unusable files are removed. */
export async function findSavedGraph(location: GraphLocation, create: CreateNearestNodes): Promise<SavedGraph | null> {
  try {
    const saved = await readSaved(location, create)
    await sweep(location, saved.graphFile)
    return saved
  } catch {
    // Any error means that a new graph is built.
    await sweep(location, null)
    return null
  }
}

async function readSaved(
  location: GraphLocation,
  create: CreateNearestNodes,
): Promise<SavedGraph & { readonly graphFile: string }> {
  const bytes = await readFile(listPath(location))
  const hashEnd = bytes.indexOf('\n')
  const content = bytes.subarray(hashEnd + 1)
  if (bytes.toString('latin1', 0, hashEnd) !== hashOf(content)) throw new Error('The list is damaged')
  const headEnd = content.indexOf('\n')
  // The hash has verified the content.
  const head = JSON.parse(content.toString('utf8', 0, headEnd)) as ListHead
  if (head.format !== format || head.metric !== location.metric || head.floats !== location.floats)
    throw new Error('The list is of another index')
  const graphPath = join(location.folder, head.graphFile)
  if ((await syncAndHash(graphPath)) !== head.graphHash) throw new Error('The graph is damaged')
  const nearest = create(location.metric, location.floats)
  nearest.load(graphPath)
  const body = content.subarray(headEnd + 1)
  const nodes = body.length / 12
  if (nearest.size() !== nodes || nearest.dimensions() !== location.floats)
    throw new Error('The graph is of another list')
  const origins = Array.from({ length: nodes }, (_, node) => ({
    key: body.readDoubleLE(node * 8),
    hash: body.readUInt32LE(nodes * 8 + node * 4),
  }))
  return { nearest, origins, measured: head.measured, graphFile: head.graphFile }
}

/** Removes every file of the index except the list and the graph it names; without one, the list too. */
async function sweep(location: GraphLocation, graphFile: string | null): Promise<void> {
  const isOurs = (file: string): boolean => file.startsWith(`${location.name}.`)
  const isKept = (file: string): boolean =>
    graphFile !== null && (file === graphFile || file === `${location.name}.nodes`)
  const files = await readdir(location.folder).catch(() => [])
  for (const file of files) if (isOurs(file) && !isKept(file)) await unlink(join(location.folder, file)).catch(() => {})
}

const hashOf = (bytes: Uint8Array): string => Bun.hash.wyhash(bytes).toString(16)

/** Syncs the file and returns its hash. */
async function syncAndHash(path: string): Promise<string> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
    const chunk = Buffer.alloc(hashChunkBytes)
    let hash = 0n
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length)
      if (bytesRead === 0) return hash.toString(16)
      hash = Bun.hash.wyhash(chunk.subarray(0, bytesRead), hash)
    }
  } finally {
    await file.close()
  }
}

const hashChunkBytes = 1024 * 1024
