/**
 * Hot reload of functions in development: loads the code again after a change of one of its files. Code that does not
 * load is reported, and the previous code remains active.
 */
import { existsSync, type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'

export interface FunctionWatchOptions {
  /** The folder of the functions; need not exist yet. */
  readonly folder: string
  /** Modules of the code in force, also outside of the folder. */
  readonly files: () => readonly string[]
  readonly reload: () => Promise<void>
  readonly onReload: () => void
  /** Not called again for the same message. */
  readonly onFailure: (error: unknown) => void
  /** Editors write a file in several steps. */
  readonly debounceMs?: number
}

/** Watches until closed. Reloads are serialized: a change during one triggers another after it. */
export function watchFunctions(options: FunctionWatchOptions): { close(): void } {
  const { folder, debounceMs = 30 } = options
  const watchers = new Map<string, FSWatcher>()
  let timer: ReturnType<typeof setTimeout> | null = null
  let failure: string | null = null
  let isClosed = false
  let running: Promise<void> = Promise.resolve()

  /** Watches the folder with those below it, and the folders of modules elsewhere. */
  function follow(): void {
    const outside = options.files().map((file) => dirname(file))
    // Of a folder that does not exist yet, its creation is watched.
    const root = existsSync(folder) ? folder : dirname(folder)
    for (const path of new Set([root, ...outside])) {
      if (watchers.has(path) || (path.startsWith(folder) && path !== folder && watchers.has(folder))) continue
      const isRoot = path === folder
      watchers.set(
        path,
        watch(path, { recursive: isRoot }, (_, name) => change(path, name)).on('error', () => watchers.delete(path)),
      )
    }
  }

  function change(path: string, name: string | null): void {
    const isOurs = path === folder || name === null || options.files().some((file) => dirname(file) === path)
    if (isClosed || (!isOurs && !existsSync(folder)) || /(?:^|[\\/])node_modules[\\/]/.test(name ?? '')) return
    if (timer) clearTimeout(timer)
    timer = setTimeout(() => {
      timer = null
      running = running.then(load)
    }, debounceMs)
  }

  async function load(): Promise<void> {
    if (isClosed) return
    try {
      await options.reload()
      failure = null
      options.onReload()
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (message !== failure) options.onFailure(error)
      failure = message
    }
    follow()
  }

  follow()
  return {
    close() {
      isClosed = true
      if (timer) clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}
