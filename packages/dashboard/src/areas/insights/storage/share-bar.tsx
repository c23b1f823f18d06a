/** Parts of a whole as one bar. The numbers are beside it, so that it is hidden from those who do not see it. */
import { ColorLegend } from '../color-legend.tsx'

export const shareKinds = ['records', 'index', 'search'] as const
export type ShareKind = (typeof shareKinds)[number]

export interface Share {
  readonly kind: ShareKind
  readonly value: number
}

const width = 1000
const height = 10

export function ShareBar({ shares, max }: { readonly shares: readonly Share[]; readonly max: number }) {
  let x = 0
  return (
    <svg
      className="share-bar"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <rect className="share-track" width={width} height={height} />
      {shares.map(({ kind, value }) => {
        const length = (value / Math.max(1, max)) * width
        const start = x
        x += length
        return <rect key={kind} className={`is-${kind}`} x={start} width={length} height={height} />
      })}
    </svg>
  )
}

const labels: Readonly<Record<ShareKind, string>> = {
  records: 'Records',
  index: 'Indexes',
  search: 'Full-text search',
}

export const ShareLegend = ({ kinds }: { readonly kinds: readonly ShareKind[] }) => (
  <ColorLegend kinds={kinds} titles={labels} className="share-legend" />
)
