/**
 * Measures files: downloads and ranges beside nginx, uploads beside synced copies, lists of a full bucket beside those
 * of a small one, and memory during many uploads.
 */
import type { LoopResult } from '../baseline-loops.ts'
import { Histogram } from '../load/histogram.ts'
import type { LoadJob } from '../load/load.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import type { Reported } from '../report.ts'
import { type Baseline, clients } from '../scenarios.ts'
import { type Comparison, compare, type Plan, type Round, roundOf } from '../setup/measure.ts'
import { readMemoryBytes } from '../setup/proc.ts'
import type { Copies } from './baseline.ts'
import { download, downloadRange, list, upload } from './requests.ts'
import {
  checkStored,
  filesPerFolder,
  folderAt,
  keyAt,
  megabyte,
  type SharedFile,
  type StorageSetup,
  smallFileBytes,
} from './setup.ts'

type BaselineLine = Pick<Baseline, 'title' | 'budget'>

/** Called with each measurement when it is complete. */
export type OnMeasured = (measurement: Reported) => void

/** Amounts of a run, beside the plan. */
export interface StorageAmounts {
  readonly smallFiles: number
  /** Downloads of 100 MB per round. */
  readonly largeDownloads: number
  /** Uploads of 1 MB, and of 100 MB, per round. */
  readonly uploads: number
  readonly largeUploads: number
  /** Size of each of the uploads during which memory is recorded. */
  readonly parallelBytes: number
}

/** `full` writes some 8 GB. */
export const amounts: Record<'full' | 'quick', StorageAmounts> = {
  full: { smallFiles: 10_000, largeDownloads: 24, uploads: 320, largeUploads: 5, parallelBytes: 200 * megabyte },
  quick: { smallFiles: 1000, largeDownloads: 8, uploads: 64, largeUploads: 2, parallelBytes: 20 * megabyte },
}

const rangeBytes = 64 * 1024
/** Enough to exceed caches of responses. */
const rangesVariety = 1000
const smallDownloadsAtOnce = 16
const largeDownloadsAtOnce = 4
const uploadsAtOnce = 16
const parallelUploads = 20
/** Maximum growth of memory during `parallelUploads` uploads, whatever their size. */
const growthBytesMax = 100 * megabyte
/** A list must not slow down with the number of other files in the bucket. */
const listShareMin = 0.9

/** Runs all measurements in order, on an unused setup. */
export async function measureStorage(
  setup: StorageSetup,
  plan: Plan,
  amount: StorageAmounts,
  onMeasured: OnMeasured,
): Promise<Reported[]> {
  const measurements: Reported[] = []
  const { one, hundred } = setup
  const steps = [
    () => measureDownload(setup, plan, `Download of 1 MB, ${smallDownloadsAtOnce} in flight; MB`, one, null),
    () =>
      measureDownload(
        setup,
        plan,
        `Download of 100 MB, ${largeDownloadsAtOnce} in flight; MB`,
        hundred,
        amount.largeDownloads,
      ),
    () => measureRanges(setup, plan, hundred),
    () => measureUploads(setup, plan, amount.uploads),
    () => measureLargeUploads(setup, plan, amount.largeUploads),
    () => measureSmallUploads(setup, plan, amount.smallFiles),
    () => measureLists(setup, plan, amount.smallFiles),
    () => measureMemory(setup, amount.parallelBytes),
  ]
  for (const step of steps) {
    const measurement = await step()
    measurements.push(measurement)
    onMeasured(measurement)
  }
  return measurements
}

interface Target {
  readonly pid: number
  readonly port: number
}

/** Runs one round of the load generator, timed or with a fixed number of requests. Its units are requests. */
async function runRound(
  { load }: StorageSetup,
  { pid, port }: Target,
  plan: Pick<Plan, 'warmupSeconds' | 'seconds'>,
  job: Pick<LoadJob, 'requests' | 'connections' | 'total'>,
): Promise<Round> {
  const { warmupSeconds, seconds } = plan
  return roundOf(await load.run({ ports: [port], watched: [[pid]], warmupSeconds, seconds, ...job }), 1)
}

/** Converts the units of a round to megabytes. */
const inMegabytes = (round: Round, bytesPerUnit: number): Round => ({
  ...round,
  units: (round.units * bytesPerUnit) / megabyte,
})

/** Compares the server with nginx; measures it alone where nginx is missing. */
function besideNginx(
  { server, nginx }: StorageSetup,
  rounds: number,
  run: (target: Target, isNginx: boolean) => Promise<Round>,
): Promise<Comparison<BaselineLine>> {
  const baseline = { title: 'nginx', budget: null }
  return compare<BaselineLine>(
    { pid: server.pid, run: () => run(server, false) },
    nginx ? [{ baseline, run: () => run(nginx, true) }] : [],
    rounds,
  )
}

async function measureDownload(
  setup: StorageSetup,
  plan: Plan,
  title: string,
  { path, nginxPath, bytes }: SharedFile,
  total: number | null,
): Promise<Reported> {
  const connections = total === null ? smallDownloadsAtOnce : largeDownloadsAtOnce
  const run = async (target: Target, isNginx: boolean): Promise<Round> => {
    const requests = [download(isNginx ? nginxPath : path, bytes)]
    return inMegabytes(await runRound(setup, target, plan, { requests, connections, total }), bytes)
  }
  return { scenario: { title }, ...(await besideNginx(setup, plan.rounds, run)) }
}

/** Ranges spread over the file, the same ones in the same order. */
async function measureRanges(setup: StorageSetup, plan: Plan, file: SharedFile): Promise<Reported> {
  const ranges = file.bytes / rangeBytes
  const run = (target: Target, isNginx: boolean): Promise<Round> => {
    const requests = Array.from({ length: rangesVariety }, (_, at) =>
      downloadRange(isNginx ? file.nginxPath : file.path, ((at * 7919) % ranges) * rangeBytes, rangeBytes),
    )
    return runRound(setup, target, plan, { requests, connections: clients, total: null })
  }
  const title = `Range of 64 KB of 100 MB, ${clients} in flight`
  return { scenario: { title }, ...(await besideNginx(setup, plan.rounds, run)) }
}

/** Compares uploads with copies of the same files at the same concurrency. `uploadsOf` returns a round's requests. */
async function besideCopies(
  setup: StorageSetup,
  rounds: number,
  copies: Copies,
  unitBytes: number,
  uploadsOf: (index: number) => LoadRequest[],
): Promise<Comparison<BaselineLine>> {
  const { bytes, total, atOnce: connections } = copies
  let roundsRun = 0
  const run = async (): Promise<Round> => {
    await syncDisk()
    const requests = uploadsOf(roundsRun++)
    const round = await runRound(
      setup,
      setup.server,
      { warmupSeconds: 0, seconds: 0 },
      { requests, connections, total },
    )
    return { ...round, units: (round.units * bytes) / unitBytes }
  }
  const runCopies = async (): Promise<Round> => {
    await syncDisk()
    const round = await copy(setup, copies)
    return { ...round, units: (round.units * bytes) / unitBytes }
  }
  const baseline = { title: 'cp and fsync', budget: null }
  return compare<BaselineLine>({ pid: setup.server.pid, run }, [{ baseline, run: runCopies }], rounds)
}

/** Writes pending data to disk, which would slow the following syncs. */
const syncDisk = async (): Promise<void> => void (await Bun.$`sync`.quiet())

async function copy({ copies }: StorageSetup, amount: Copies): Promise<Round> {
  const response = await fetch(`http://127.0.0.1:${copies.port}/copies`, {
    method: 'POST',
    body: JSON.stringify(amount),
  })
  if (!response.ok) throw new Error(`The copies failed: ${await response.text()}`)
  const result = (await response.json()) as LoopResult
  const latencies = new Histogram()
  if (result.latencies) latencies.merge(result.latencies)
  return {
    units: result.done,
    seconds: result.seconds,
    cpuSeconds: result.cpuSeconds,
    loadCpuSeconds: null,
    latencies,
  }
}

async function measureUploads(setup: StorageSetup, plan: Plan, total: number): Promise<Reported> {
  const keys = Array.from({ length: total / 4 }, (_, at) => `uploaded/${at}`)
  const requests = keys.map((key) => upload('files', key, megabyte))
  const copies = { bytes: megabyte, total, atOnce: uploadsAtOnce }
  const comparison = await besideCopies(setup, plan.rounds, copies, megabyte, () => requests)
  await checkStored(setup, 'uploaded/', new Set(keys), megabyte)
  return { scenario: { title: `Upload of 1 MB, ${uploadsAtOnce} in flight; MB` }, ...comparison }
}

async function measureLargeUploads(setup: StorageSetup, plan: Plan, total: number): Promise<Reported> {
  const bytes = 100 * megabyte
  const requests = [upload('files', 'uploaded-large', bytes)]
  const copies = { bytes, total, atOnce: 1 }
  const comparison = await besideCopies(setup, plan.rounds, copies, megabyte, () => requests)
  await checkStored(setup, 'uploaded-large', new Set(['uploaded-large']), bytes)
  return { scenario: { title: 'Upload of 100 MB, one after the other; MB' }, ...comparison }
}

/** Every upload creates another file; the lists are measured on these files. */
async function measureSmallUploads(setup: StorageSetup, plan: Plan, files: number): Promise<Reported> {
  const total = Math.ceil(files / plan.rounds)
  const requests = Array.from({ length: files }, (_, at) => upload('files', keyAt(at), smallFileBytes))
  const copies = { bytes: smallFileBytes, total, atOnce: clients }
  const comparison = await besideCopies(setup, plan.rounds, copies, smallFileBytes, (index) =>
    requests.slice(index * total, (index + 1) * total),
  )
  await checkStored(setup, 'small/', new Set(Array.from({ length: files }, (_, at) => keyAt(at))), smallFileBytes)
  return { scenario: { title: `Upload of 1 KB, ${clients} in flight; files` }, ...comparison }
}

async function measureLists(setup: StorageSetup, plan: Plan, files: number): Promise<Reported> {
  const folders = Array.from({ length: files / filesPerFolder }, (_, at) => folderAt(at))
  const lists = (bucket: string, prefixes: readonly string[]) => () =>
    runRound(setup, setup.server, plan, {
      requests: prefixes.map((prefix) => list(bucket, prefix)),
      connections: clients,
      total: null,
    })
  const all = lists('files', folders)
  const few = lists('few', [folderAt(0)])
  // The same process serves both: warm up, so that the first one does not include JIT compilation.
  for (const run of [few, all]) await run()
  const baseline = { title: `the same in a bucket of ${filesPerFolder}`, budget: listShareMin }
  const comparison = await compare<BaselineLine>(
    { pid: setup.server.pid, run: all },
    [{ baseline, run: few }],
    plan.rounds,
  )
  const title = `List by prefix, ${filesPerFolder} of ${files.toLocaleString('en-US')} files`
  return { scenario: { title }, ...comparison }
}

/** All uploads replace one key, so that the load generator keeps one file in memory. */
async function measureMemory(setup: StorageSetup, bytes: number): Promise<Reported> {
  await syncDisk()
  const before = readMemoryBytes(setup.server.pid, 'VmRSS')
  const requests = [upload('files', 'parallel', bytes)]
  const run = async (): Promise<Round> => {
    const job = { requests, connections: parallelUploads, total: parallelUploads }
    return inMegabytes(await runRound(setup, setup.server, { warmupSeconds: 0, seconds: 0 }, job), bytes)
  }
  const comparison = await compare<BaselineLine>({ pid: setup.server.pid, run }, [], 1)
  await checkStored(setup, 'parallel', new Set(['parallel']), bytes)
  const verdict = growthVerdict(before, comparison.peakBytes)
  const title = `${parallelUploads} uploads of ${bytes / megabyte} MB at once; MB`
  return { scenario: { title }, ...comparison, verdict }
}

/** The growth of memory against its budget; empty where the kernel does not report it. */
export function growthVerdict(before: number | null, peak: number | null): string {
  if (before === null || peak === null) return ''
  const growth = Math.max(0, peak - before)
  return `+ ${Math.round(growth / megabyte)} < ${growthBytesMax / megabyte} MB ${growth < growthBytesMax ? '✓' : '✗'}`
}
