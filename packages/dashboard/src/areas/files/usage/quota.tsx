/** Bytes beside the quota on them. */
import { formatBytes } from '../../../design/format/number.ts'
import { Progress } from '../../../design/progress/progress.tsx'

/** From this share on, uploads are likely to be refused soon. */
const nearlyFull = 0.9

export interface QuotaProps {
  readonly label: string
  readonly bytes: number
  /** Null without a quota. */
  readonly quotaBytes: number | null
}

export function Quota({ label, bytes, quotaBytes }: QuotaProps) {
  if (quotaBytes === null) return <span className="files-quota-none">No quota</span>
  const share = bytes / Math.max(1, quotaBytes)
  return (
    <div className="files-quota">
      <Progress
        label={label}
        value={Math.min(bytes, quotaBytes)}
        max={quotaBytes}
        tone={share >= nearlyFull ? 'bad' : 'accent'}
      >
        {formatShare(share)} of {formatBytes(quotaBytes)}
      </Progress>
    </div>
  )
}

/** Rounded down, so that `100%` is full. */
const formatShare = (share: number): string => (share > 0 && share < 0.01 ? '< 1%' : `${Math.floor(share * 100)}%`)
