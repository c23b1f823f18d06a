/** The meaning of the colors of a chart: a square of each kind beside its title. */
import { classNames } from '../../design/class-names.ts'

interface ColorLegendProps<Kind extends string> {
  readonly kinds: readonly Kind[]
  readonly titles: Readonly<Record<Kind, string>>
  /** The class in which `is-KIND` has a color. */
  readonly className: string
}

export const ColorLegend = <Kind extends string>({ kinds, titles, className }: ColorLegendProps<Kind>) => (
  <ul className={classNames('color-legend', className)} aria-label="Colors">
    {kinds.map((kind) => (
      <li key={kind}>
        <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
          <rect className={`is-${kind}`} width={10} height={10} rx={2} />
        </svg>
        {titles[kind]}
      </li>
    ))}
  </ul>
)
