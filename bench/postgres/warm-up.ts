/**
 * Runs requests on nodes until their path is compiled: until then the compiler takes CPU of its own, and the code that
 * runs is slower. Four nodes spend that four times, on a quarter of the requests each.
 */
import { readGroupCpuSeconds, readGroupThreadCpuSeconds } from '../setup/proc.ts'

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

/** CPU seconds of all processes, and of their compilers; null where the kernel does not report it. */
const readCpu = (pids: readonly number[]) => ({
  all: readGroupCpuSeconds(pids),
  compilers: readGroupThreadCpuSeconds(pids, compilerThreads),
})

type Cpu = ReturnType<typeof readCpu>

/** The share of the compilers between two times; NaN where it is unknown. */
const compilerShare = (before: Cpu, after: Cpu): number =>
  (Number(after.compilers) - Number(before.compilers)) / (Number(after.all) - Number(before.all))

/** Returns the rows that the rounds have added. */
export async function warmUp(
  nodes: readonly Process[],
  run: (seconds: number) => Promise<{ readonly units: number; readonly rowsAdded: number }>,
): Promise<number> {
  const pids = nodes.map(({ pid }) => pid)
  const seconds = roundSecondsPerNode * nodes.length
  let [units, rowsAdded] = [0, 0]
  for (let spent = 0; spent < secondsMax; spent += seconds) {
    const before = readCpu(pids)
    const round = await run(seconds)
    units += round.units
    rowsAdded += round.rowsAdded
    const isCompiling = compilerShare(before, readCpu(pids)) > compilerShareMax
    if (units >= unitsPerNodeMin * nodes.length && !isCompiling) break
  }
  return rowsAdded
}
