/** The parts of React Native that the client uses, moved by a test. */

/** `AppState`, `NetInfo` and `AsyncStorage` of a simulated phone. */
export function createPhone() {
  const appListeners = new Set<(state: string) => void>()
  const networkListeners = new Set<(state: { isConnected: boolean | null }) => void>()
  const values = new Map<string, string>()
  const phone = {
    AppState: {
      currentState: 'active' as string | null,
      addEventListener(_: 'change', listener: (state: string) => void) {
        appListeners.add(listener)
        return { remove: () => void appListeners.delete(listener) }
      },
    },
    /** Reports the current state to a new listener, as the module does. */
    NetInfo: {
      addEventListener(listener: (state: { isConnected: boolean | null }) => void) {
        networkListeners.add(listener)
        queueMicrotask(() => listener({ isConnected: true }))
        return () => void networkListeners.delete(listener)
      },
    },
    storage: {
      getItem: async (key: string) => values.get(key) ?? null,
      setItem: async (key: string, value: string) => void values.set(key, value),
      removeItem: async (key: string) => void values.delete(key),
    },
  }
  return {
    ...phone,
    values,
    /** Moves the app to another state. */
    become(state: 'active' | 'inactive' | 'background'): void {
      phone.AppState.currentState = state
      for (const listener of [...appListeners]) listener(state)
    },
    /** Reports a change of the network. */
    connected(isConnected: boolean): void {
      for (const listener of [...networkListeners]) listener({ isConnected })
    },
    get listeners() {
      return appListeners.size + networkListeners.size
    },
  }
}
