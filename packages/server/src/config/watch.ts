/**
 * Development: a changed configuration is loaded and served at once; one with mistakes is reported, and the old one
 * goes on. Owns the watching of files; what reloading means is the app's.
 */
import { type FSWatcher, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from './config.ts'
import { ConfigError } from './issues.ts'
import type { LoadedConfig } from './load.ts'

export interface ConfigWatch {
  close(): void
}

export interface ConfigWatchOptions {
  /** What to watch until the first reload says otherwise. */
  readonly files: readonly string[]
  /** Loads what is in the files now. Throws for a mistake. */
  readonly load: () => Promise<LoadedConfig>
  /** Serves it. Throws when it cannot be, and goes on with the old one. */
  readonly apply: (config: Config) => Promise<void>
  readonly onReload: (loaded: LoadedConfig) => void
  /** Of a load or apply that failed; not called again for the same message. */
  readonly onFailure: (error: unknown) => void
  /** Quiet time after which a burst of changes counts as over. Editors write a file in several steps. */
  readonly debounceMs?: number
}

/** Watches until closed. One reload at a time: a change during one is seen after it. */
export function watchConfig(options: ConfigWatchOptions): ConfigWatch {
  const { debounceMs = 100 } = options
  // Folders, not files: many editors save by putting a new file in the place of the old one.
  const folders = new Map<string, FSWatcher>()
  let files: ReadonlySet<string> = new Set()
  let timer: ReturnType<typeof setTimeout> | null = null
  let failure: string | null = null
  let isClosed = false
  let running: Promise<void> = Promise.resolve()

  function follow(next: readonly string[]): void {
    files = new Set(next)
    const wanted = new Set(next.map((file) => dirname(file)))
    for (const [folder, watcher] of folders) {
      if (wanted.has(folder)) continue
      watcher.close()
      folders.delete(folder)
    }
    for (const folder of wanted) {
      if (folders.has(folder)) continue
      // A folder that vanishes ends its watcher with an error; the file in it is missed at the next reload.
      folders.set(
        folder,
        watch(folder, (_, name) => change(folder, name)).on('error', () => {}),
      )
    }
  }

  function change(folder: string, name: string | null): void {
    // After a failure the mending file may be one that was never loaded.
    if (isClosed || (name !== null && failure === null && !files.has(join(folder, name)))) return
    if (timer) clearTimeout(timer)
    timer = setTimeout(() => {
      timer = null
      running = running.then(reload)
    }, debounceMs)
  }

  async function reload(): Promise<void> {
    if (isClosed) return
    try {
      const loaded = await options.load()
      follow(loaded.files)
      await options.apply(loaded.config)
      failure = null
      options.onReload(loaded)
    } catch (error) {
      if (error instanceof ConfigError) follow([...files, ...error.files])
      const message = error instanceof Error ? error.message : String(error)
      if (message !== failure) options.onFailure(error)
      failure = message
    }
  }

  follow(options.files)
  return {
    close() {
      isClosed = true
      if (timer) clearTimeout(timer)
      for (const watcher of folders.values()) watcher.close()
    },
  }
}
