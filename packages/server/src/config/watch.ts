/**
 * Hot reload in development: watches the configuration's files and applies changes. An invalid configuration is
 * reported and the previous one remains active.
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
  /** Files to watch until the first reload. */
  readonly files: readonly string[]
  /** Loads the current files. Throws for an invalid configuration. */
  readonly load: () => Promise<LoadedConfig>
  /** Applies the configuration. If it throws, the previous one remains active. */
  readonly apply: (config: Config) => Promise<void>
  readonly onReload: (loaded: LoadedConfig) => void
  /** Called when loading or applying failed; not again for the same message. */
  readonly onFailure: (error: unknown) => void
  /** Debounce interval: editors write a file in several steps. */
  readonly debounceMs?: number
}

/** Watches until closed. Reloads are serialized: a change during one triggers another after it. */
export function watchConfig(options: ConfigWatchOptions): ConfigWatch {
  const { debounceMs = 100 } = options
  // Watches folders, not files, because many editors replace a file when saving.
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
      // A removed folder ends its watcher with an error; the next reload reports the missing file.
      folders.set(
        folder,
        watch(folder, (_, name) => change(folder, name)).on('error', () => {}),
      )
    }
  }

  function change(folder: string, name: string | null): void {
    // After a failure, the fix may be in a file that was never loaded.
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
