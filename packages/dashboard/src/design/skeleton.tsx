/** The outline of what is being loaded, in its later size. */
import { classNames } from './class-names.ts'

export function Skeleton({ lines = 3, className }: { readonly lines?: number; readonly className?: string }) {
  return (
    <div className={classNames('skeleton', className)} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} className={`skeleton-line skeleton-line-${at % 4}`} />
      ))}
    </div>
  )
}
