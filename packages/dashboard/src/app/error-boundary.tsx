/** Keeps a defect of one area from taking the rest of the page along. */
import { Component, type ErrorInfo, type ReactNode } from 'react'
import { Button } from '../design/button.tsx'
import { CodeBlock } from '../design/code-block.tsx'
import { EmptyState } from '../design/empty-state.tsx'

interface Props {
  /** The view is shown again when it changes. */
  readonly resetKey: string
  readonly children: ReactNode
}

interface State {
  readonly error: Error | null
  readonly resetKey: string
}

const isMissingChunk = (error: Error): boolean => /dynamically imported module|importing a module/i.test(error.message)

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, resetKey: this.props.resetKey }

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  static getDerivedStateFromProps({ resetKey }: Props, state: State): Partial<State> | null {
    return resetKey === state.resetKey ? null : { error: null, resetKey }
  }

  override componentDidCatch(error: unknown, { componentStack }: ErrorInfo): void {
    console.error(error, componentStack)
  }

  override render(): ReactNode {
    const { error } = this.state
    if (error === null) return this.props.children
    if (isMissingChunk(error))
      return (
        <EmptyState
          icon="refresh"
          title="This page has a newer version"
          action={
            <Button kind="primary" onClick={() => location.reload()}>
              Reload
            </Button>
          }
        >
          The server was updated while the page was open, or it cannot be reached.
        </EmptyState>
      )
    return (
      <EmptyState
        icon="alert"
        title="This view has failed"
        action={
          <>
            <Button onClick={() => this.setState({ error: null })}>Show it again</Button>
            <Button kind="primary" onClick={() => location.reload()}>
              Reload the page
            </Button>
          </>
        }
      >
        <p>It is a defect of the dashboard. The other areas still work.</p>
        <CodeBlock code={error.stack ?? error.message} label="For a report" />
      </EmptyState>
    )
  }
}
