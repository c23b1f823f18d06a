/**
 * Runs requests on nodes until their path is compiled: until then the compiler takes CPU of its own, and the code that
 * runs is slower. Four nodes spend that four times, on a quarter of the requests each.
 */
import { readCpuSeconds, readThreadCpuSeconds } from '../setup/proc.ts'

/** Seconds of a round, for each node. */
const roundSecondsPerNode = 2
/** Share of the CPU that the compiler may take in a round. */
const compilerShareMax = 0.02
/** Each tier compiles after more requests than the one before, so that there are pauses between them. */
const unitsPerNodeMin = 40_000
/** Ends the warm-up of slow requests. */
const secondsMax = 60
/** Name of the threads that compile. */
const compilerThreads = 'JITWorker'

interface Process {
  readonly pid: number
}

/** CPU seconds of all processes and of their compilers; null where the kernel does not report it. */
function readCpu(processes: readonly Process[]): { readonly all: number; readonly compilers: number } | null {
  let [all, compilers] = [0, 0]
  for (const { pid } of processes) {
    const own = readCpuSeconds(pid)
    const compiler = readThreadCpuSeconds(pid, compilerThreads)
    if (own === null || compiler === null) return null
    all += own
    compilers += compiler
  }
  return { all, compilers }
}

/** Returns the rows that the rounds have added. */
export async function warmUp(
  nodes: readonly Process[],
  run: (seconds: number) => Promise<{ readonly units: number; readonly rowsAdded: number }>,
): Promise<number> {
  const seconds = roundSecondsPerNode * nodes.length
  let [units, rowsAdded] = [0, 0]
  for (let spent = 0; spent < secondsMax; spent += seconds) {
    const before = readCpu(nodes)
    const round = await run(seconds)
    const after = readCpu(nodes)
    units += round.units
    rowsAdded += round.rowsAdded
    const compiled =
      before === null || after === null ? 0 : (after.compilers - before.compilers) / (after.all - before.all)
    if (units >= unitsPerNodeMin * nodes.length && compiled <= compilerShareMax) break
  }
  return rowsAdded
}
