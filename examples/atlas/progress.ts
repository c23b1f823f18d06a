/** Progress bar for a known number of rows: one line redrawn in place on a terminal, plain lines elsewhere. */

/** How often the bar is redrawn, and how often a plain line is printed. */
const redrawMs = 100
const lineMs = 2000
/** The rate covers the last few seconds, so that the remaining time follows the current speed. */
const rateWindowMs = 5000
const barChars = 30

export interface Progress {
  /** Sets the number of finished rows. */
  update(done: number): void
  /** Draws the final state with the overall rate, and ends the line. */
  end(): void
}

export interface ProgressOptions {
  readonly label: string
  readonly total: number
  /** Rows of earlier runs: counted as done, but not in the rate. */
  readonly done?: number
  readonly out?: NodeJS.WriteStream
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

/** Draws on `out`, by default standard output, until `end`. */
export function createProgress(options: ProgressOptions): Progress {
  const { label, total, out = process.stdout, now = () => performance.now() } = options
  const drawEveryMs = out.isTTY ? redrawMs : lineMs
  const startedAt = now()
  let done = options.done ?? 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let samples = [{ at: startedAt, done }]

  const recentRate = (): number => {
    const at = now()
    samples = [...samples.filter((sample) => at - sample.at <= rateWindowMs), { at, done }]
    const first = samples[0] as { at: number; done: number }
    return at > first.at ? ((done - first.done) * 1000) / (at - first.at) : 0
  }

  const draw = (rate: number): void => {
    drawnAt = now()
    const line = describe(label, done, total, rate, out.isTTY)
    out.write(out.isTTY ? `\r\x1b[2K${line.slice(0, Math.max(20, (out.columns || 80) - 1))}` : `${line}\n`)
  }

  return {
    update(rows) {
      done = rows
      if (now() - drawnAt >= drawEveryMs) draw(recentRate())
    },
    end() {
      const rows = done - (options.done ?? 0)
      draw(rows === 0 ? 0 : (rows * 1000) / (now() - startedAt))
      if (out.isTTY) out.write('\n')
    },
  }
}

function describe(label: string, done: number, total: number, rate: number, bar: boolean): string {
  const share = total === 0 ? 1 : done / total
  const filled = Math.round(share * barChars)
  const drawn = bar ? `${'█'.repeat(filled)}${'░'.repeat(barChars - filled)} ` : ''
  const percent = `${Math.floor(share * 100)}%`.padStart(4)
  const rows = `${done.toLocaleString('en')} of ${total.toLocaleString('en')} rows`
  const speed = rate > 0 ? ` · ${Math.round(rate).toLocaleString('en')} rows/s` : ''
  const left = rate > 0 && done < total ? ` · ${duration((total - done) / rate)} left` : ''
  return `${label} ${drawn}${percent} · ${rows}${speed}${left}`
}

function duration(seconds: number): string {
  const rounded = Math.ceil(seconds)
  return rounded < 60 ? `${rounded} s` : `${Math.floor(rounded / 60)} min ${rounded % 60} s`
}
