/** The records that refer to a record: how many by each field, and the way to them. */
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { useSchema } from '../../../app/queries.ts'
import { api } from '../../../app/transport.ts'
import { Icon } from '../../../design/icons.tsx'
import { apiPath, pagePath, referringTo, type TableAddress } from '../location.ts'
import { formatConditions } from '../rows/row-query.ts'

/** Relations whose records are counted at once; each count may read a table without an index. */
const countedMax = 12

export function BackwardRelations({ address, id }: { readonly address: TableAddress; readonly id: string }) {
  const { data: schema } = useSchema()
  const relations = schema ? referringTo(schema, address) : []
  if (relations.length === 0) return null
  return (
    <section className="record-relations">
      <h3>Referred to by</h3>
      <ul>
        {relations.map(({ table, field }, at) => (
          <li key={`${table}.${field}`}>
            <Relation address={{ ...address, table }} field={field} id={id} isCounted={at < countedMax} />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface RelationProps {
  /** The table that refers. */
  readonly address: TableAddress
  readonly field: string
  readonly id: string
  readonly isCounted: boolean
}

function Relation({ address, field, id, isCounted }: RelationProps) {
  const filter = formatConditions([[field, '==', id]]) ?? ''
  const { data, error } = useQuery({
    queryKey: ['referring', apiPath(address), field, id],
    enabled: isCounted,
    queryFn: ({ signal }) =>
      api.get<{ readonly total: number }>(`${apiPath(address)}/count`, { query: { filter }, signal }),
  })
  const count = error !== null || !isCounted ? '' : data === undefined ? '…' : data.total.toLocaleString('en')
  return (
    <Link className="record-glance" href={`${pagePath(address)}?filter=${encodeURIComponent(filter)}`}>
      <Icon name="link" size={13} />
      <span>
        {address.table}.{field}
      </span>
      <span className="record-glance-table">{count}</span>
      <Icon name="arrow-right" size={13} />
    </Link>
  )
}
