/** Uploads into one folder: one after the other, each with its progress, canceled when the page is left. */
import { useEffect, useRef, useState } from 'react'
import { client } from '../../app/transport.ts'
import { useToasts } from '../../design/toast.tsx'
import { exists, useRefresh } from './requests.ts'

export interface UploadState {
  readonly id: number
  readonly key: string
  readonly size: number
  readonly sent: number
  readonly state: 'waiting' | 'running' | 'done' | 'failed'
  readonly error: unknown
}

export interface Uploads {
  readonly all: readonly UploadState[]
  /** Files whose keys are taken; they wait for `replace`. */
  readonly taken: readonly File[]
  /** Uploads files, and asks first for those that would replace others. */
  offer(files: readonly File[]): void
  replace(isConfirmed: boolean): void
  cancel(id: number): void
  /** Removes from the list what has ended. */
  clear(): void
}

/** More would take hours to choose by mistake. */
const filesMax = 200

interface Job {
  readonly id: number
  readonly file: File
  readonly abort: AbortController
}

export function useUploads(bucket: string, prefix: string): Uploads {
  const toasts = useToasts()
  const refresh = useRefresh(bucket)
  const [all, setAll] = useState<readonly UploadState[]>([])
  const [taken, setTaken] = useState<readonly File[]>([])
  const jobs = useRef<Job[]>([])
  const isRunning = useRef(false)
  const lastId = useRef(0)

  useEffect(
    () => () => {
      for (const { abort } of jobs.current.splice(0)) abort.abort()
    },
    [],
  )
  const change = (id: number, next: Partial<UploadState>): void =>
    setAll((known) => known.map((one) => (one.id === id ? { ...one, ...next } : one)))

  async function upload({ id, file, abort }: Job): Promise<void> {
    change(id, { state: 'running' })
    try {
      await client.files(bucket).upload(`${prefix}${file.name}`, file, {
        signal: abort.signal,
        contentType: file.type || 'application/octet-stream',
        onProgress: ({ sent }) => change(id, { sent }),
      })
      change(id, { state: 'done', sent: file.size })
    } catch (error) {
      if (!abort.signal.aborted) change(id, { state: 'failed', error })
    }
  }

  async function run(): Promise<void> {
    if (isRunning.current) return
    isRunning.current = true
    for (let job = jobs.current[0]; job; job = jobs.current[0]) {
      await upload(job)
      jobs.current = jobs.current.filter((one) => one !== job)
      void refresh()
    }
    isRunning.current = false
  }

  const add = (files: readonly File[]): void => {
    const added = files.map((file): Job => ({ id: ++lastId.current, file, abort: new AbortController() }))
    jobs.current.push(...added)
    const states = added.map(
      ({ id, file }): UploadState => ({
        id,
        key: `${prefix}${file.name}`,
        size: file.size,
        sent: 0,
        state: 'waiting',
        error: null,
      }),
    )
    setAll((known) => [...known, ...states])
    void run()
  }

  async function offer(files: readonly File[]): Promise<void> {
    if (files.length > filesMax) {
      toasts.add({ title: `At most ${filesMax} files at once`, text: 'Upload more with a script.', tone: 'bad' })
      return
    }
    try {
      const checked = await Promise.all(
        files.map(async (file) => ({ file, isTaken: await exists(bucket, `${prefix}${file.name}`) })),
      )
      add(checked.filter(({ isTaken }) => !isTaken).map(({ file }) => file))
      setTaken(checked.filter(({ isTaken }) => isTaken).map(({ file }) => file))
    } catch (error) {
      toasts.fail('The files were not uploaded', error)
    }
  }
  return {
    all,
    taken,
    offer: (files) => void offer(files),
    replace(isConfirmed) {
      if (isConfirmed) add(taken)
      setTaken([])
    },
    cancel(id) {
      jobs.current.find((job) => job.id === id)?.abort.abort()
      jobs.current = jobs.current.filter((job) => job.id !== id)
      setAll((known) => known.filter((one) => one.id !== id))
    },
    clear: () => setAll((known) => known.filter(({ state }) => state === 'waiting' || state === 'running')),
  }
}
