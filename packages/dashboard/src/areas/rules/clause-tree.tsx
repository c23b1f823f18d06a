/** The clauses of the rules as trees, each with its result in an icon and a word, and the values that it read. */
import { classNames } from '../../design/class-names.ts'
import { Icon, type IconName } from '../../design/icons.tsx'
import type { Clause } from './requests.ts'

/** What the server sends instead of a value that must not be shown. */
const masked = '[hidden]'

type Result = 'true' | 'false' | 'empty' | 'hidden' | 'open'

const icons: Readonly<Record<Result, IconName>> = {
  true: 'check',
  false: 'close',
  empty: 'minus',
  hidden: 'lock',
  open: 'more',
}

function resultOf({ result, values }: Clause): Result {
  if (result !== null) return result ? 'true' : 'false'
  const read = Object.values(values)
  if (read.includes(masked)) return 'hidden'
  // Nothing was read where there is no record to read.
  return read.length > 0 ? 'empty' : 'open'
}

interface Node {
  readonly clause: Clause
  /** The position in its parent, such as `and[1]`; of a root its rule. */
  readonly position: string
  readonly parts: readonly Node[]
}

/** Before the parts of a path that lead into a tree: `update.before.and[1].not` has two of them. */
const step = /\.(?=and\[|or\[|not(?:\.|$))/

/** The trees of a list of clauses, in which each node comes before its parts. */
export function treesOf(clauses: readonly Clause[]): readonly Node[] {
  type Building = { clause: Clause; position: string; parts: Building[] }
  const roots: Building[] = []
  const byPath = new Map<string, Building>()
  for (const clause of clauses) {
    const steps = clause.path.split(step)
    const position = steps.at(-1) ?? clause.path
    const parent = steps.length === 1 ? undefined : byPath.get(clause.path.slice(0, -position.length - 1))
    const node: Building = { clause, position, parts: [] }
    byPath.set(clause.path, node)
    ;(parent?.parts ?? roots).push(node)
  }
  return roots
}

const ruleTitles: Readonly<Record<string, string>> = {
  instance: 'Instance',
  read: 'Read',
  insert: 'Create',
  'update.before': 'Update, before',
  'update.after': 'Update, after',
  delete: 'Delete',
  filter: 'Filter',
}

/** How the parts of a node are joined. */
const joined = (parts: readonly Node[]): string | null => {
  const [first] = parts
  if (!first) return null
  if (first.position === 'not') return 'not'
  return first.position.startsWith('and') ? 'all of' : 'any of'
}

export const ClauseTree = ({ clauses }: { readonly clauses: readonly Clause[] }) => (
  <ul className="rules-trees">
    {treesOf(clauses).map((node) => (
      <li key={node.clause.path}>
        <h3>{ruleTitles[node.position] ?? node.position}</h3>
        <ul className="rules-tree">
          <Branch node={node} />
        </ul>
      </li>
    ))}
  </ul>
)

function Branch({ node }: { readonly node: Node }) {
  const { clause, parts } = node
  const result = resultOf(clause)
  const join = joined(parts)
  return (
    <li data-path={clause.path}>
      <div className={classNames('rules-clause', `is-${result}`)}>
        <span className="rules-result">
          <Icon name={icons[result]} size={12} />
          {result}
        </span>
        <div className="rules-clause-text">
          {join !== null && <span className="rules-join">{join}</span>}
          <code>{clause.text}</code>
          <Values values={clause.values} />
        </div>
      </div>
      {parts.length > 0 && (
        <ul>
          {parts.map((part) => (
            <Branch key={part.clause.path} node={part} />
          ))}
        </ul>
      )}
    </li>
  )
}

function Values({ values }: { readonly values: Clause['values'] }) {
  const entries = Object.entries(values)
  if (entries.length === 0) return null
  return (
    <span className="rules-values">
      {entries.map(([field, value]) => (
        <span key={field} className="rules-value">
          <span>{field}</span>
          {value === masked ? (
            <span className="rules-masked">
              <Icon name="lock" size={12} /> hidden
            </span>
          ) : (
            <code>{value === null ? 'empty' : JSON.stringify(value)}</code>
          )}
        </span>
      ))}
    </span>
  )
}
