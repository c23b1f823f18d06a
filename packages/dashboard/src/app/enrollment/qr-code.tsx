/** A text as a QR code, drawn by React: no image is loaded and no markup is parsed. */
import { encodeQR } from 'qr'

/** Modules of light space around it, which the standard requires. */
const border = 4

/** Runs of dark modules of a row, as parts of a path. */
function runsOf(row: readonly boolean[], y: number): string[] {
  const runs: string[] = []
  for (let x = 0; x < row.length; x++) {
    if (!row[x]) continue
    const start = x
    while (row[x + 1]) x++
    runs.push(`M${start} ${y}h${x + 1 - start}v1H${start}z`)
  }
  return runs
}

/** Dark on light in every theme, since cameras expect it. `label` says what it contains and what to do instead. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border })
  return (
    <svg className="qr-code" role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`}>
      <rect width="100%" height="100%" rx="2" />
      <path d={rows.flatMap(runsOf).join('')} shapeRendering="crispEdges" />
    </svg>
  )
}
