/**
 * Worker thread with the copies of some indexes. Replies in request order, and works on graphs in small slices between
 * requests.
 */
import { parentPort } from 'node:worker_threads'
import { vectorSaveEveryMs } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import { VectorCore } from './core.ts'
import { loadGraphLibrary } from './graph.ts'
import {
  type CopyAnswer,
  type CopyRequest,
  type CopyResults,
  type CopyTask,
  type CopyWarning,
  unpackRows,
} from './messages.ts'

const createNearest = await loadGraphLibrary()
const copies = new Map<number, { readonly core: VectorCore; readonly dimensions: number }>()
let isWorking = false
let hasPendingWork = false
let isSaving = false

function get(copy: number): { readonly core: VectorCore; readonly dimensions: number } {
  const found = copies.get(copy)
  if (!found) throw new EngineError('unavailable', 'The thread has no such copy')
  return found
}

function answer(request: CopyTask): CopyResults[CopyTask['task']] | Promise<null> {
  switch (request.task) {
    case 'open': {
      const { exactValuesMax, saveEveryMs, ...options } = request.options
      const core = new VectorCore({
        ...options,
        ...(exactValuesMax === undefined ? {} : { exactValuesMax }),
        ...(saveEveryMs === undefined ? {} : { saveEveryMs }),
        createNearest,
        warn: (message) => parentPort?.postMessage({ index: options.name, message } satisfies CopyWarning),
        nowMs: () => performance.now(),
      })
      copies.set(request.copy, { core, dimensions: options.dimensions })
      return { hasGraphs: createNearest !== null }
    }
    case 'apply': {
      const { core, dimensions } = get(request.copy)
      core.apply(unpackRows(request.rows, dimensions), request.isCurrent)
      void work()
      return { bytes: core.state().bytes }
    }
    case 'search':
      return get(request.copy).core.search(request.query)
    case 'state':
      return get(request.copy).core.state()
    case 'drop':
      copies.delete(request.copy)
      return null
    case 'save':
      return saveAll()
  }
}

async function saveAll(): Promise<null> {
  isSaving = true
  // The slice in progress may be a save itself.
  while (isWorking) await nextTick()
  for (const { core } of copies.values()) await core.save()
  return null
}

/** Messages are delivered between two ticks. */
const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function work(): Promise<void> {
  hasPendingWork = true
  if (isWorking) return
  isWorking = true
  try {
    // Messages during a slice may bring more work.
    while (hasPendingWork && !isSaving) {
      hasPendingWork = false
      for (const { core } of copies.values()) {
        if (await core.work()) hasPendingWork = true
        await nextTick()
      }
    }
  } finally {
    isWorking = false
  }
}
setInterval(() => void work(), vectorSaveEveryMs).unref()

async function respond(request: CopyRequest): Promise<void> {
  parentPort?.postMessage(await attempt(request))
}

async function attempt(request: CopyRequest): Promise<CopyAnswer> {
  const { id } = request
  try {
    return { id, result: await answer(request) }
  } catch (error) {
    const kind = error instanceof EngineError ? error.kind : null
    return { id, error: { kind, message: error instanceof Error ? error.message : String(error) } }
  }
}

parentPort?.on('message', (request: CopyRequest) => void respond(request))
