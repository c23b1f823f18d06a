/** The recent log lines of functions, by function, call and level. */
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Card, Toolbar } from '../../design/page.tsx'
import { Select } from '../../design/select.tsx'
import { CodePage } from './code-page.tsx'
import { LineList } from './line-list.tsx'
import { type LogLevel, logLevels, useFunctions, useLines } from './requests.ts'

const all = '*'
const levelOptions = logLevels.map((level) => ({
  value: level,
  label: level === 'error' ? 'error' : `${level} and above`,
}))
const levelOf = (text: string | null): LogLevel => logLevels.find((level) => level === text) ?? 'debug'

export function Lines() {
  const url = useUrlState()
  const [name, requestId, level] = [url.get('function') ?? '', url.get('request') ?? '', levelOf(url.get('level'))]
  const { data: functions = [] } = useFunctions()
  const query = useLines({ function: name, requestId, level })
  const names = new Set([...functions.map((one) => one.name), ...(name === '' ? [] : [name])])
  return (
    <CodePage
      current="logs"
      description="The latest 200 lines of functions that this node keeps in memory, newest first."
      query={query}
    >
      <Toolbar label="Filters">
        <Select
          className="code-select"
          label="Function"
          value={name === '' ? all : name}
          options={[{ value: all, label: 'Every function' }, ...[...names].map((one) => ({ value: one, label: one }))]}
          onChange={(next) => url.set({ function: next === all ? null : next })}
        />
        <Select
          className="code-select"
          label="Level"
          value={level}
          options={levelOptions}
          onChange={(next) => url.set({ level: next === 'debug' ? null : next }, { replace: true })}
        />
        {requestId !== '' && (
          <Button
            size="small"
            icon="close"
            aria-label="Show the lines of all calls"
            onClick={() => url.set({ request: null })}
          >
            Call: {requestId}
          </Button>
        )}
      </Toolbar>
      {query.data?.length === 0 && <NoLines />}
      {query.data !== undefined && query.data.length > 0 && (
        <Card>
          <LineList
            lines={query.data}
            {...(requestId === '' ? { onRequest: (request: string) => url.set({ request }) } : {})}
          />
        </Card>
      )}
    </CodePage>
  )
}

const NoLines = () => (
  <EmptyState icon="logs" title="No lines">
    <p>Functions write lines with the context that they receive. Errors are added with their place in your code.</p>
    <div className="code-sample">
      <CodeBlock code={"ctx.log.info('order paid', { order: order.id })"} label="functions/index.ts" />
    </div>
  </EmptyState>
)
