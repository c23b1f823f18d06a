/** What a kind of store is for, and how one is declared. */
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'

export type Kind = 'kv' | 'sql' | 'vector'

const lessons: Readonly<Record<Kind, { readonly title: string; readonly text: string; readonly config: string }>> = {
  kv: {
    title: 'No key-value namespaces yet',
    text: 'Functions and services keep settings, counters and caches under keys, as JSON, with a lifetime if wanted.',
    config: `export default defineConfig({
  kv: { settings: {} },
})`,
  },
  sql: {
    title: 'No SQL databases yet',
    text: 'A database for tables of your own, apart from the records of the application.',
    config: `export default defineConfig({
  sql: { reports: {} },
})`,
  },
  vector: {
    title: 'No vector indexes yet',
    text: 'An index finds the vectors that are nearest to one, such as embeddings of texts.',
    config: `export default defineConfig({
  vector: { docs: { dimensions: 384, metric: 'cosine' } },
})`,
  },
}

export function NoStores({ kind }: { readonly kind: Kind }) {
  const { title, text, config } = lessons[kind]
  return (
    <EmptyState icon="stores" title={title}>
      <p>{text}</p>
      <CodeBlock code={config} label="plinth.config.ts" />
    </EmptyState>
  )
}
