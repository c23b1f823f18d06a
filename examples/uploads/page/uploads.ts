/** The upload queue. The client resumes uploads; the page remembers which ones were interrupted by closing it. */
import { type FileIdentity, isPlinthError } from 'plinth-client'
import { bucket } from './plinth.ts'
import { button, createLine, type UploadLine } from './upload-line.ts'

const uploadsAtOnce = 3
const storagePrefix = 'drawer.upload.'

interface Pending extends FileIdentity {
  readonly key: string
  readonly sent: number
}

const idOf = (key: string, { size, lastModified }: FileIdentity): string =>
  `${storagePrefix}${key}/${size}/${lastModified}`

function listPending(userId: string): Pending[] {
  const ids = Object.keys(localStorage).filter((id) => id.startsWith(`${storagePrefix}${userId}/`))
  return ids.map((id) => JSON.parse(localStorage.getItem(id) ?? ''))
}

/** Shows the interrupted uploads of earlier visits. Returns the function that uploads a file. */
export function createUploads(userId: string, onDone: () => void): (file: File) => void {
  const queue: (() => void)[] = []
  const interrupted = new Map<string, UploadLine>()
  let active = 0

  function next(): void {
    while (active < uploadsAtOnce && queue.length > 0) queue.shift()?.()
  }

  /** Forgets an upload, and deletes what the server has of it. */
  async function cancel(key: string, file: FileIdentity, line: UploadLine): Promise<void> {
    await bucket.cancelUpload(key, file)
    localStorage.removeItem(idOf(key, file))
    interrupted.delete(idOf(key, file))
    line.remove()
  }

  function enqueue(key: string, file: File, line: UploadLine): void {
    line.show('queued', 'queued')
    queue.push(() => void start(key, file, line))
    next()
  }

  async function start(key: string, file: File, line: UploadLine): Promise<void> {
    const { name, size, type, lastModified } = file
    const abort = new AbortController()
    let isCanceled = false
    const stop = () => {
      isCanceled = true
      abort.abort()
    }
    line.show(
      'sending',
      '',
      button('Pause', () => abort.abort()),
      button('Cancel', stop),
    )
    active += 1
    try {
      await bucket.upload(key, file, {
        signal: abort.signal,
        onProgress({ sent }) {
          const pending: Pending = { key, name, size, type, lastModified, sent }
          localStorage.setItem(idOf(key, file), JSON.stringify(pending))
          line.progress(sent)
        },
      })
      localStorage.removeItem(idOf(key, file))
      line.remove()
      onDone()
    } catch (error) {
      if (isCanceled) return await cancel(key, file, line)
      const actions = [
        button('Resume', () => enqueue(key, file, line)),
        button('Cancel', () => void cancel(key, file, line)),
      ]
      if (isPlinthError(error, 'aborted')) line.show('paused', 'paused', ...actions)
      else line.show('failed', (error as Error).message, ...actions)
    } finally {
      active -= 1
      next()
    }
  }

  for (const { key, sent, ...file } of listPending(userId)) {
    const line = createLine(file)
    interrupted.set(idOf(key, file), line)
    line.progress(sent)
    line.show(
      'interrupted',
      'interrupted: choose the same file again to resume',
      button('Cancel', () => void cancel(key, file, line)),
    )
  }

  return (file) => {
    const key = `${userId}/${file.name}`
    const line = interrupted.get(idOf(key, file)) ?? createLine(file)
    interrupted.delete(idOf(key, file))
    enqueue(key, file, line)
  }
}
