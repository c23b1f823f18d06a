/** Waiting for what a server of the tests has come to: asked again each time it says that something has happened. */
export interface Watch {
  /** Something has happened. */
  readonly tell: () => void
  /** Resolves once it is so; asked at once, and whenever something happens. */
  readonly until: (isSo: () => boolean) => Promise<void>
}

export function createWatch(): Watch {
  const watchers = new Set<() => void>()
  return {
    tell() {
      for (const look of watchers) look()
    },
    until: (isSo) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!isSo()) return
          watchers.delete(look)
          resolve()
        }
        watchers.add(look)
        look()
      }),
  }
}
