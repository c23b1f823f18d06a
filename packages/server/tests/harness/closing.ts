/** Closes resources after each test, in reverse order. */
import { afterEach } from 'bun:test'

/** Returns a function that registers a resource to close and returns it. */
export function closeAfterEach(): <T>(opened: T, close: (opened: T) => Promise<unknown>) => T {
  const closings: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closings.splice(0).reverse()) await close()
  })
  return (opened, close) => {
    closings.push(() => close(opened))
    return opened
  }
}
