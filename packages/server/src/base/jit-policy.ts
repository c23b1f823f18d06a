/** When the runtime compiles JavaScript to machine code. */

/** By how much longer than usual code is interpreted. Ten times as much slows thousands of requests after the start. */
const reluctantScale = 100

/** Earlier releases of the runtime, under which `plinth` may be started as well, have one policy. */
const setPolicy = (scale: number): void => Bun.unsafe.setJITPolicy?.(scale)

/**
 * Does work that runs most of its code once, such as a start. Compiling what a start happens to repeat took a sixth of
 * its processor time and 7 MB; code that is used afterwards is compiled as usual.
 */
export async function withReluctantJit<T>(work: () => Promise<T>): Promise<T> {
  setPolicy(reluctantScale)
  try {
    return await work()
  } finally {
    setPolicy(1)
  }
}
