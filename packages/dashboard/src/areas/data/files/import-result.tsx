/** How far an import has come, and the lines that cannot be stored. */
import { Progress } from '../../../design/progress/progress.tsx'
import { faultsMax, type ImportProgress } from './import-run.ts'

export interface ImportResultProps {
  readonly isDryRun: boolean
  readonly progress: ImportProgress
  /** Of the file, in bytes. */
  readonly size: number
  readonly isBusy: boolean
  readonly table: string
}

const count = (value: number): string => value.toLocaleString('en')

function describe({ isDryRun, progress, isBusy, table }: ImportResultProps): string {
  const { inserted, updated, faults, isOver } = progress
  const counts = `${count(inserted)} inserted, ${count(updated)} updated`
  if (isBusy) return isDryRun ? `Checked: ${count(inserted + updated)} records are fine` : counts
  const lines =
    faults.length >= faultsMax
      ? `At least ${faultsMax} lines`
      : faults.length === 1
        ? '1 line'
        : `${faults.length} lines`
  if (!isOver)
    return isDryRun
      ? 'The check was canceled. Nothing was stored.'
      : `Ended early: ${counts}. Import again to continue.`
  if (isDryRun)
    return faults.length === 0
      ? `Every line is fine. The import would have ${counts}. Nothing is stored yet.`
      : `${lines} cannot be stored. Without them, the import would have ${counts}. Nothing is stored yet.`
  return faults.length === 0
    ? `Imported into ${table}: ${counts}.`
    : `Stopped: ${counts}. The batch with the lines below was not stored, and nothing after it. Correct the file and import it again to continue.`
}

export function ImportResult(props: ImportResultProps) {
  const { progress, size, isBusy } = props
  const { faults, position, isOver } = progress
  const tone = faults.length > 0 ? 'bad' : isOver ? 'good' : 'accent'
  return (
    <section className="stack" aria-label="Result" aria-busy={isBusy}>
      <Progress label="Read" value={position} max={size} tone={tone}>
        {describe(props)}
      </Progress>
      {faults.length > 0 && (
        <ul className="data-import-faults" aria-label="Faulty lines">
          {faults.map(({ line, problem }, at) => (
            <li key={`${line} ${at}`}>
              <span className="data-import-line">Line {count(line)}</span>
              <span dir="auto">{problem}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
