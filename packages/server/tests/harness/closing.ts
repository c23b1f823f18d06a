/** What a test opens is closed after it, last first. */
import { afterEach } from 'bun:test'

/** Gives what is to be called with each thing that was opened, and gives it back, for all tests of the file. */
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
