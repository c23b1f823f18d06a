/** Searches of an index and look-ups by id, from the command to the response. */
import type { Caller } from '../../access/caller.ts'
import { notFound } from '../../errors.ts'
import type { Reply } from '../../http/endpoint.ts'
import type { ResponseLimits } from '../../http/replies/large-responses.ts'
import type { VectorCommandOf } from './commands.ts'
import { parseFilter } from './filter.ts'
import { parseValues } from './input.ts'
import { type ShownMetadata, showMetadata } from './metadata.ts'
import type { StoredIndex } from './migrations.ts'
import { vectorsReply } from './reply.ts'
import type { VectorRows } from './rows.ts'
import type { Match } from './search.ts'
import type { ServedIndex } from './served-indexes.ts'

type SearchCommand = VectorCommandOf<'search'> | VectorCommandOf<'queryById'>

export interface VectorQueries {
  /** Best match first. Throws 400 for an invalid query, 404 if the vector to search by does not exist. */
  search(index: ServedIndex, command: SearchCommand, caller: Caller): Promise<Reply>
  /** In the order of the ids; absent vectors are omitted. */
  getByIds(index: StoredIndex, ids: readonly string[], caller: Caller): Promise<Reply>
}

export function createQueries(rows: VectorRows, limits: ResponseLimits): VectorQueries {
  async function getValues(stored: StoredIndex, command: SearchCommand): Promise<Float32Array> {
    if (command.action === 'search') return parseValues(command.vector, stored.definition, 'vector')
    const { vectorId } = command
    const found = await rows.find(stored, [vectorId], { values: true, metadata: false })
    const values = found.get(vectorId)?.values
    if (!values) throw notFound('Vector')
    return values
  }

  return {
    async search({ stored, searcher }, command, caller) {
      const { topK, namespace = null, returnValues, returnMetadata } = command
      const { metadataIndexes } = stored.definition
      const shown: ShownMetadata = returnMetadata === true ? 'all' : returnMetadata === false ? 'none' : returnMetadata
      const conditions = parseFilter(command.filter, metadataIndexes)
      const vector = await getValues(stored, command)
      const wanted = { values: returnValues, metadata: shown !== 'none' }
      const found = await searcher.search({ vector, topK, namespace, conditions, wanted })
      const show = ({ id, score, namespace, values, metadata }: Match) => ({
        id,
        score,
        ...(namespace === '' ? {} : { namespace }),
        ...(values === null ? {} : { values: [...values] }),
        ...(shown === 'none' ? {} : { metadata: showMetadata(metadata, shown, metadataIndexes) }),
      })
      return vectorsReply({ name: 'matches', found, show, count: true }, caller, limits)
    },

    async getByIds(stored, ids, caller) {
      const distinctIds = [...new Set(ids)]
      const found = await rows.find(stored, distinctIds, { values: true, metadata: true })
      const { metadataIndexes } = stored.definition
      const existing = distinctIds.flatMap((id) => {
        const vector = found.get(id)
        return vector ? [{ ...vector, id }] : []
      })
      const show = ({ id, values, metadata, namespace }: (typeof existing)[number]) => ({
        id,
        values: values === null ? [] : [...values],
        metadata: showMetadata(metadata, 'all', metadataIndexes),
        namespace: namespace === '' ? null : namespace,
      })
      return vectorsReply({ name: 'vectors', found: existing, show, count: false }, caller, limits)
    },
  }
}
