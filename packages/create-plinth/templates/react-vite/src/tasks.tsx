/** The live list of tasks. */
import { isPlinthError, type User } from 'plinth-client'
import { useLive } from 'plinth-client/react'
import { type FormEvent, useState } from 'react'
import { plinth, tasks } from './plinth'

const query = tasks.sort('createdAt', 'desc').limit(100)

export function Tasks({ user }: { user: User }) {
  const { items, status, isLoading, error: listError } = useLive(query)
  const [error, setError] = useState('')
  const open = items.filter(({ isDone }) => !isDone).length

  /** Shown at once; a change that the server refuses is rolled back. */
  async function change(work: () => Promise<unknown>) {
    try {
      await work()
      setError('')
    } catch (failure) {
      if (!isPlinthError(failure)) throw failure
      setError(failure.message)
    }
  }

  function add(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const title = String(new FormData(form).get('title')).trim()
    form.reset()
    if (title) void change(() => tasks.optimistic.insert({ title, isDone: false, authorId: user.id }))
  }

  return (
    <main>
      <header>
        <h1>Tasks</h1>
        <span className={`status ${status}`} title={`The list is ${status}`}>
          {status}
        </span>
        <span className="user">{user.displayName ?? user.email ?? 'Guest'}</span>
        <button type="button" className="link" onClick={() => plinth.auth.signOut()}>
          Sign out
        </button>
      </header>

      <form className="add" onSubmit={add}>
        <input
          name="title"
          aria-label="New task"
          placeholder="What needs to be done?"
          maxLength={200}
          autoComplete="off"
        />
        <button type="submit" className="primary">
          Add
        </button>
      </form>

      {(error || listError) && (
        <p role="alert" className="error">
          {error || listError?.message}
        </p>
      )}

      <ul>
        {items.map(({ id, title, isDone, authorId }) => {
          const isMine = authorId === user.id
          return (
            <li key={id} className={isDone ? 'done' : ''}>
              <label>
                <input
                  type="checkbox"
                  checked={isDone}
                  disabled={!isMine}
                  onChange={() => change(() => tasks.optimistic.update(id, { isDone: !isDone }))}
                />
                <span>{title}</span>
              </label>
              {isMine ? (
                <button
                  type="button"
                  className="remove"
                  aria-label={`Delete ${title}`}
                  onClick={() => change(() => tasks.optimistic.delete(id))}
                >
                  ×
                </button>
              ) : (
                <span className="muted">by another user</span>
              )}
            </li>
          )
        })}
      </ul>

      {!isLoading && items.length === 0 ? (
        <p className="empty">
          <strong>Nothing here yet</strong>
          Add a task, and open this page in a second browser to see it arrive.
        </p>
      ) : (
        <p className="muted footer">{isLoading ? 'Loading…' : `${open} of ${items.length} open`}</p>
      )}
    </main>
  )
}
