/** Options for React Native: the session in its storage, and sockets that follow the state of the app. */
import type { ClientOptions, SessionStorage } from '../types/options.ts'

/** `AppState` of `react-native`. */
interface AppState {
  readonly currentState: string | null
  addEventListener(type: 'change', listener: (state: string) => void): { remove(): void }
}

/** `@react-native-async-storage/async-storage`, or another store of texts. */
interface AsyncStorage {
  getItem(key: string): Promise<string | null>
  setItem(key: string, value: string): Promise<void>
  removeItem(key: string): Promise<void>
}

/** `@react-native-community/netinfo`. */
interface NetInfo {
  addEventListener(listener: (state: { readonly isConnected: boolean | null }) => void): () => void
}

export interface ReactNativeOptions {
  readonly AppState: AppState
  readonly storage: AsyncStorage | SessionStorage
  readonly NetInfo?: NetInfo
}

const storageOf = (storage: AsyncStorage | SessionStorage): SessionStorage =>
  'getItem' in storage
    ? {
        get: (key) => storage.getItem(key),
        set: (key, value) => storage.setItem(key, value),
        remove: (key) => storage.removeItem(key),
      }
    : storage

/**
 * Options for `createClient`. In the background sockets are closed, as the system would do without a notice; in the
 * foreground, or when the network is back, they reconnect and live lists continue with what they missed.
 */
export const reactNative = ({ AppState, storage, NetInfo }: ReactNativeOptions): ClientOptions => ({
  storage: storageOf(storage),
  lifecycle(listener) {
    const wake = (): void => {
      if (AppState.currentState !== 'background') listener('wake')
    }
    const app = AppState.addEventListener('change', (state) => {
      if (state === 'background') listener('sleep')
      else wake()
    })
    // Networks change in the background too, where a socket would be cut again.
    const stopNetwork = NetInfo?.addEventListener(({ isConnected }) => {
      if (isConnected) wake()
    })
    return () => {
      app.remove()
      stopNetwork?.()
    }
  },
})
